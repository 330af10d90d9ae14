package seccomp

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// The expectations below were written from the kernel's own tables
// (syscall_64.tbl, asm-generic/unistd.h), by number, without a look at the
// generated ones: they would find a wrong number, a missing name and a slip of
// the compiler alike. Every number that is not named here answers ENOSYS.
type expected struct {
	arch  string
	audit uint32
	// allow holds calls that are allowed whatever their arguments.
	allow, refuse, done string
	// judged holds calls that depend on arguments, with the answer to all zeros.
	judged map[uint32]Action
}

// unified are the numbers that all architectures share, from 424 on.
const (
	unifiedAllow  = " 424 434 436 437 439 441 448 449 451-456 462-466"
	unifiedRefuse = " 428-433 438 442 443 447 467"
)

var expectations = []expected{
	{
		arch: "amd64", audit: 0xc000003e,
		allow: "0-15 17-40 42-52 54 55 57-100 102 104-132 137 138 140 143 145-152 158 160 186-202 204 205 211 213-226 228-235" +
			" 240-245 247 252-255 257 258 260-271 273-278 280-297 299 307 309 315 316 318 319 322" +
			" 324-332 334 335" + unifiedAllow,
		refuse: "101 103 153-155 159 161 163-173 175 176 179 227 246 248-250 272 298 300 301 303-305 308" +
			" 310-313 320 321 323" + unifiedRefuse,
		done: "162 306",
		judged: map[uint32]Action{
			16: Allow, 41: RefuseEAFNOSUPPORT, 53: RefuseEAFNOSUPPORT, 56: Allow,
			133: Allow, 135: Allow, 157: RefuseEINVAL, 259: Allow, 317: Allow,
			141: Allow, 142: Allow, 144: Allow, 203: Allow, 251: RefuseEPERM, 302: Allow, 314: Allow,
		},
	},
	{
		arch: "arm64", audit: 0xc00000b7,
		allow: "5-17 19-28 31 32 34-38 43-50 52-57 59 61-80 82-88 90 91 93-96 98-103 107-111 113-115 120 121 123-139 141" +
			" 143-160 163-166 168 169 172-197 200-216 221-223 226-234 240 242 243 260 269 275 276 278 279" +
			" 281 283-291 293" + unifiedAllow,
		refuse: "39-41 51 58 60 89 97 104-106 112 116 117 142 161 162 170 171 217-219 224 225 241 262-266 268" +
			" 270-273 280 282 294" + unifiedRefuse,
		done: "81 267",
		judged: map[uint32]Action{
			29: Allow, 33: Allow, 92: Allow, 167: RefuseEINVAL, 198: RefuseEAFNOSUPPORT,
			199: RefuseEAFNOSUPPORT, 220: Allow, 277: Allow,
			30: RefuseEPERM, 118: Allow, 119: Allow, 122: Allow, 140: Allow, 261: Allow, 274: Allow,
		},
	},
}

// parse reads "3 5-7" into a set.
func parse(t *testing.T, list string) map[uint32]bool {
	t.Helper()
	out := map[uint32]bool{}
	for _, item := range strings.Fields(list) {
		from, to, isRange := strings.Cut(item, "-")
		first, err := strconv.ParseUint(from, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		last := first
		if isRange {
			if last, err = strconv.ParseUint(to, 10, 32); err != nil {
				t.Fatal(err)
			}
		}
		for n := first; n <= last; n++ {
			if out[uint32(n)] {
				t.Fatalf("%d is listed twice", n)
			}
			out[uint32(n)] = true
		}
	}
	return out
}

func compile(t testing.TB, arch string) *Filter {
	t.Helper()
	f, err := Compile(arch, Default)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// ask evaluates in both ways and requires one answer.
func ask(t testing.TB, f *Filter, audit, nr uint32, args [6]uint64) Action {
	t.Helper()
	a, err := f.Evaluate(audit, nr, args)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := rawRun(f.Bytes(), audit, nr, args)
	if err != nil {
		t.Fatal(err)
	}
	if raw.action != a {
		t.Fatalf("number %d: the simulator says %v, the bytes say %v", nr, a, raw.action)
	}
	return a
}

func TestEveryNumber(t *testing.T) {
	ones := [6]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	for _, x := range expectations {
		t.Run(x.arch, func(t *testing.T) {
			f := compile(t, x.arch)
			allow, refuse, done := parse(t, x.allow), parse(t, x.refuse), parse(t, x.done)
			for nr := range uint32(601) {
				want, judged := x.judged[nr]
				switch {
				case judged:
				case allow[nr]:
					want = Allow
				case refuse[nr]:
					want = RefuseEPERM
				case done[nr]:
					want = Done
				default:
					want = RefuseENOSYS
				}
				if got := ask(t, f, x.audit, nr, [6]uint64{}); got != want {
					t.Errorf("number %d, arguments zero: %v, want %v", nr, got, want)
				}
				if judged {
					continue
				}
				if got := ask(t, f, x.audit, nr, ones); got != want {
					t.Errorf("number %d, arguments all ones: %v, want %v", nr, got, want)
				}
			}
		})
	}
}

// A call that is allowed whatever its arguments must be decided without looking
// at them, or kernels could not skip the filter for it. (rawRun fails on any
// instruction that the kernel's dry run does not follow.)
func TestPlainlyAllowedCallsReadNoArgument(t *testing.T) {
	for _, x := range expectations {
		f := compile(t, x.arch)
		worst := 0
		for nr := range parse(t, x.allow) {
			r, err := rawRun(f.Bytes(), x.audit, nr, [6]uint64{})
			if err != nil {
				t.Fatal(err)
			}
			if r.onArgs {
				t.Errorf("%s: number %d is allowed only after a look at its arguments", x.arch, nr)
			}
			worst = max(worst, r.steps)
		}
		if worst > 16 {
			t.Errorf("%s: an allowed call takes %d steps, want 16 at most", x.arch, worst)
		}
	}
}

func TestForeignArchitecturesAreKilled(t *testing.T) {
	foreign := map[string]uint32{
		"i386": 0x40000003, "arm": 0x40000028, "amd64": 0xc000003e, "arm64": 0xc00000b7,
		"amd64 big-endian bit": 0x4000003e, "x86 without 64-bit bit": 0x8000003e, "riscv64": 0xc00000f3,
		"s390x": 0x80000016, "zero": 0, "ones": 0xffffffff,
	}
	for _, x := range expectations {
		f := compile(t, x.arch)
		for name, audit := range foreign {
			if audit == x.audit {
				continue
			}
			for _, nr := range []uint32{0, 1, 11, 59, 60, 93, 221, 231, 425, 0x40000000, 0xffffffff} {
				if got := ask(t, f, audit, nr, [6]uint64{}); got != KillProcess {
					t.Errorf("%s filter, entry %s, number %d: %v, want kill_process", x.arch, name, nr, got)
				}
			}
		}
	}
}

// x32 calls come in by the 64-bit entry, with bit 30 set in the number.
func TestX32AndOddNumbersAreNotThere(t *testing.T) {
	for _, x := range expectations {
		f := compile(t, x.arch)
		for nr := range uint32(601) {
			for _, bit := range []uint32{0x40000000, 0x80000000, 0xc0000000, 0x10000, 0x1000} {
				if got := ask(t, f, x.audit, nr|bit, [6]uint64{}); got != RefuseENOSYS {
					t.Fatalf("%s: number %#x: %v, want errno(ENOSYS)", x.arch, nr|bit, got)
				}
			}
		}
		for _, nr := range []uint32{601, 1023, 0x3fffffff, 0x7fffffff, 0xffffffff} {
			if got := ask(t, f, x.audit, nr, [6]uint64{}); got != RefuseENOSYS {
				t.Errorf("%s: number %#x: %v, want errno(ENOSYS)", x.arch, nr, got)
			}
		}
	}
}

func TestLength(t *testing.T) {
	for _, x := range expectations {
		f := compile(t, x.arch)
		if f.Len() > 200 {
			t.Errorf("%s: %d instructions, want 200 at most: installing costs time in every run", x.arch, f.Len())
		}
		if got, want := len(f.Bytes()), f.Len()*8; got != want {
			t.Errorf("%s: %d bytes for %d instructions, want %d", x.arch, got, f.Len(), want)
		}
	}
}

func ExampleAction_String() {
	fmt.Println(Allow, Done, KillProcess, RefuseEPERM, RefuseENOSYS, errnoBase|5, Action(0x7ff00001))
	// Output: allow done kill_process errno(EPERM) errno(ENOSYS) errno(5) action(0x7ff00001)
}

// NoSharedMemory takes shmget away and nothing else, and leaves other entries to
// the filter below it.
func TestNoSharedMemory(t *testing.T) {
	for _, x := range expectations {
		f, err := Compile(x.arch, NoSharedMemory)
		if err != nil {
			t.Fatal(err)
		}
		shmget := map[string]uint32{"amd64": 29, "arm64": 194}[x.arch]
		for nr := range uint32(601) {
			want := Allow
			if nr == shmget {
				want = RefuseENOSYS
			}
			if got := ask(t, f, x.audit, nr, [6]uint64{}); got != want {
				t.Errorf("%s: number %d: %v, want %v", x.arch, nr, got, want)
			}
		}
		if got := ask(t, f, 0x40000003, shmget, [6]uint64{}); got != Allow {
			t.Errorf("%s: another entry: %v", x.arch, got)
		}
	}
}
