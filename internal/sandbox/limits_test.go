package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/testkit"
)

func limit(f func(l *belljar.Limits)) func(*Spec) { return func(s *Spec) { f(&s.Limits) } }

func TestMemoryBites(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		small := limit(func(l *belljar.Limits) { l.MemoryBytes = 128 << 20; l.DiskBytes = 1 << 30 })
		for name, source := range map[string]string{
			"heap":   "print('growing', flush=True)\nx = []\nwhile True: x.append(bytearray(1 << 20))\n",
			"forks":  "import os, time\nprint('growing', flush=True)\nfor _ in range(8):\n  if os.fork() == 0:\n    x = bytearray(b'x') * (64 << 20)\n    time.sleep(20)\nfor _ in range(8): os.wait()\nos.kill(os.getpid(), 9)\n",
			"tmpfs":  "print('growing', flush=True)\nf = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))\n",
			"memfd":  "import os\nprint('growing', flush=True)\nf = os.memfd_create('x')\nwhile True: os.write(f, bytes(1 << 20))\n",
			"shared": "import mmap, time\nprint('growing', flush=True)\nx = []\nwhile True:\n  m = mmap.mmap(-1, 1 << 20); m.write(b'x' * (1 << 20)); x.append(m)\n",
		} {
			o := python(t, h, source, small)
			if o.Cause != CauseMemory || o.out != "growing\n" {
				t.Errorf("%s: %+v %q %s", name, o.Exit, o.out, o.err)
			}
		}
		// What is left of a run must not be taken from the next one.
		o := python(t, h, "x = bytearray(b'x') * (90 << 20)\nprint(len(x))\n", small)
		if o.Cause != CauseNone || o.Wait != 0 {
			t.Errorf("after it: %+v %s", o.Exit, o.err)
		}
		if o.Usage.PeakMemoryBytes < 90<<20 || o.Usage.PeakMemoryBytes > 128<<20 {
			t.Errorf("peak memory %d", o.Usage.PeakMemoryBytes)
		}
	})
}

func TestProcessesAreBounded(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		o := python(t, h, `
import os, signal, time
n = 0
try:
    while n < 5000:
        if os.fork() == 0:
            time.sleep(60)
        n += 1
except OSError as e:
    print(type(e).__name__, n, flush=True)
time.sleep(0.2)
`, limit(func(l *belljar.Limits) { l.Processes = 20 }))
		if o.out != "BlockingIOError 19\n" || o.Wait != 0 {
			t.Errorf("%q %s %+v", o.out, o.err, o.Exit)
		}
		if len(o.Denials) != 1 || o.Denials[0].What != "processes" {
			t.Errorf("denials %+v", o.Denials)
		}
	})
}

func TestWallClock(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		short := limit(func(l *belljar.Limits) { l.TimeoutMS = 300 })
		for name, line := range map[string]string{
			"sleep": "echo before; sleep 30",
			"busy":  "echo before; while :; do :; done",
			"stop":  "echo before; kill -STOP $$; echo after",
			"deaf":  "trap '' TERM INT HUP; echo before; sleep 30 & wait",
			"tree":  "echo before; (setsid sleep 30 & setsid sleep 30 & sleep 30) & wait",
		} {
			o := shell(t, h, line, short)
			if o.Cause != CauseTimeout || o.out != "before\n" {
				t.Errorf("%s: %+v %q %s", name, o.Exit, o.out, o.err)
			}
		}
	})
}

func TestSignalsAndCodes(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		for line, want := range map[string]syscall.WaitStatus{
			"exit 0": 0, "exit 7": 7 << 8, "exit 137": 137 << 8, "kill -KILL $$": 9, "kill -TERM $$": 15, "kill -SEGV $$": 11,
			"ulimit -c unlimited 2>/dev/null; kill -ABRT $$": 6,
		} {
			if o := shell(t, h, line); o.Wait != want || o.Cause != CauseNone {
				t.Errorf("%s: %+v, want %#x", line, o.Exit, want)
			}
		}
	})
}

func TestNothingSurvives(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		nonce := fmt.Sprintf("survivor-%d", time.Now().UnixNano())
		begin := time.Now()
		o := shell(t, h, "(setsid sh -c 'sleep 60; : "+nonce+"' &) ; (sh -c 'kill -STOP $$; : "+nonce+"' &); sh -c 'trap \"\" TERM; sleep 60; : "+nonce+"' & sleep 0.2; echo done")
		if o.out != "done\n" || o.Wait != 0 {
			t.Errorf("%+v %q %s", o.Exit, o.out, o.err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("the answer waited %v for children that held the pipes", took)
		}
		gone(t, nonce)
	})
}

// gone fails unless every process with the word in its arguments is away within a
// second.
func gone(t *testing.T, word string) {
	t.Helper()
	var left string
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = ""
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			b, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			if bytes.Contains(b, []byte(word)) && e.Name() != "self" && e.Name() != "thread-self" {
				left += e.Name() + " " + string(bytes.ReplaceAll(b, []byte{0}, []byte(" "))) + "\n"
			}
		}
		if left == "" {
			return
		}
	}
	t.Errorf("still there:\n%s", left)
}

func TestOutput(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		o := shell(t, h, "yes", limit(func(l *belljar.Limits) { l.OutputBytes = 1 << 20 }))
		if o.Cause != CauseOutput || len(o.out) != 1<<20 {
			t.Errorf("flood: %+v, %d bytes", o.Exit, len(o.out))
		}
		o = shell(t, h, "echo first; sleep 0.1; yes >&2", limit(func(l *belljar.Limits) { l.OutputBytes = 1 << 20 }))
		if o.Cause != CauseOutput || o.out != "first\n" || len(o.err) != 1<<20 {
			t.Errorf("flood on the other stream: %+v, %q and %d bytes", o.Exit, o.out, len(o.err))
		}
		o = python(t, h, "import os\nfor i in range(2000):\n  os.write(1, b'o' * 1000); os.write(2, b'e' * 1000)\n")
		if o.Wait != 0 || len(o.out) != 2_000_000 || len(o.err) != 2_000_000 {
			t.Errorf("both streams: %+v, %d and %d bytes", o.Exit, len(o.out), len(o.err))
		}
		o = shell(t, h, "exec 1>&- 2>&-; sleep 0.3; exit 7")
		if o.Wait != 7<<8 {
			t.Errorf("closed streams: %+v", o.Exit)
		}
	})
}

func TestStdin(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		big := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
		if o := shell(t, h, "wc -c; cat"); o.out != "0\n" {
			t.Errorf("empty stdin: %q", o.out)
		}
		if o := shell(t, h, "cat", func(s *Spec) { s.Stdin = big }); o.out != string(big) {
			t.Errorf("large stdin: %d bytes of %d", len(o.out), len(big))
		}
		if o := shell(t, h, "echo unread", func(s *Spec) { s.Stdin = big }); o.out != "unread\n" || o.Wait != 0 {
			t.Errorf("unread stdin: %+v %q", o.Exit, o.out)
		}
	})
}

func TestDisk(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		small := limit(func(l *belljar.Limits) { l.DiskBytes = 8 << 20; l.Inodes = 100 })
		o := python(t, h, `
import errno, os
def fill(path):
    try:
        with open(path, "wb", 0) as f:
            while True: f.write(bytes(1 << 20))
    except OSError as e:
        return errno.errorcode[e.errno]
print(fill("x"), fill("/tmp/x"), fill("/dev/shm/x"))
for p in ("x", "/tmp/x", "/dev/shm/x"): os.remove(p)
n = 0
try:
    while True:
        open("f%d" % n, "w").close(); n += 1
except OSError as e:
    print(errno.errorcode[e.errno], 50 < n < 100)
os.chmod(".", 0)
`, small)
		if o.out != "ENOSPC ENOSPC ENOSPC\nENOSPC True\n" || o.Wait != 0 {
			t.Errorf("%q %s %+v", o.out, o.err, o.Exit)
		}
		if len(o.Denials) != 1 || o.Denials[0].What != "inodes" || !o.Denials[0].Likely {
			t.Errorf("denials %+v", o.Denials)
		}
		if o = shell(t, h, "cat /dev/zero > x", small); len(o.Denials) != 1 || o.Denials[0].What != "disk" {
			t.Errorf("denials %+v", o.Denials)
		}
		if o = shell(t, h, "echo x > x", small); len(o.Denials) != 0 {
			t.Errorf("denials %+v", o.Denials)
		}
		_, err := h.Run(context.Background(), &Spec{Argv: []string{"/bin/true"}, Limits: func() belljar.Limits { l := defaults(); l.DiskBytes = 1 << 20; return l }(),
			Files: []File{{Name: "big", Data: make([]byte, 2<<20)}}})
		var refusal *belljar.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "do not fit") {
			t.Errorf("files larger than the workspace: %v", err)
		}
	})
}

func TestFilesAndNames(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		o := shell(t, h, "cat a/b/c.txt; ./run.sh; ls -R; stat -c %a run.sh; ls -l /opt/belljar/x; echo x >> /opt/belljar/x/tool.py", func(s *Spec) {
			s.Files = []File{{Name: "a/b/c.txt", Data: []byte("deep\n")}, {Name: "a/d", Data: nil}, {Name: "run.sh", Data: []byte("#!/bin/sh\necho ran\n"), Mode: 0o755}}
			s.Assets = []File{{Name: "/opt/belljar/x/tool.py", Data: []byte("print()\n")}}
		})
		if !strings.HasPrefix(o.out, "deep\nran\n") || !strings.Contains(o.out, "755\n") || !strings.Contains(o.out, "-r--r--r--") || !strings.Contains(o.err, "Permission denied") {
			t.Errorf("%q %q", o.out, o.err)
		}
		for _, name := range []string{"", ".", "..", "../x", "/etc/x", "a/../../x", "a//b", "a/./b", "x\x00y", strings.Repeat("n", 2000), "dir/"} {
			_, err := h.Run(context.Background(), &Spec{Argv: []string{"/bin/true"}, Limits: defaults(), Files: []File{{Name: name}}})
			var refusal *belljar.Refusal
			if !errors.As(err, &refusal) || refusal.Code != belljar.CodeBadFileName {
				t.Errorf("name %q: %v", name, err)
			}
		}
		for _, list := range [][]File{{{Name: "a"}, {Name: "a"}}, {{Name: "a"}, {Name: "a/b"}}} {
			_, err := h.Run(context.Background(), &Spec{Argv: []string{"/bin/true"}, Limits: defaults(), Files: list})
			var refusal *belljar.Refusal
			if !errors.As(err, &refusal) || refusal.Code != belljar.CodeBadFileName {
				t.Errorf("clash %v: %v", list, err)
			}
		}
	})
}

func TestToolchainFolders(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/tool", []byte("#!/bin/sh\necho tool\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		o := start(t, h, func(s *Spec) { s.Argv = []string{dir + "/tool"}; s.Toolchain = []string{dir} })
		if o.out != "tool\n" {
			t.Errorf("%q %s", o.out, o.err)
		}
		o = shell(t, h, "echo x > "+dir+"/new || echo closed; ls "+dir, func(s *Spec) { s.Toolchain = []string{dir} })
		if o.out != "closed\ntool\n" {
			t.Errorf("%q %s", o.out, o.err)
		}
		home, _ := os.UserHomeDir()
		for _, bad := range []string{"/", "/root", "/home", "/etc", "/proc", "/home/somebody", home, "/usr/../root", "relative", "/proc/1"} {
			_, err := h.Run(context.Background(), &Spec{Argv: []string{"/bin/true"}, Limits: defaults(), Toolchain: []string{bad}})
			var refusal *belljar.Refusal
			if !errors.As(err, &refusal) {
				t.Errorf("toolchain %q: %v", bad, err)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		ctx, cancel := context.WithCancel(context.Background())
		out, w := io.Pipe()
		go func() {
			var b [1]byte
			_, _ = out.Read(b[:])
			cancel()
			_, _ = io.Copy(io.Discard, out)
		}()
		exit, err := h.Run(ctx, &Spec{Argv: []string{"/bin/sh", "-c", "echo x; sleep 60"}, Limits: defaults(), Stdout: w})
		w.Close()
		if err != nil || exit.Cause != CauseCancel {
			t.Errorf("%+v %v", exit, err)
		}
	})
}

// TestManyAtOnce hammers the slots from several sides and then counts what is left.
func TestManyAtOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 25 {
					want := fmt.Sprintf("%d/%d", i, j)
					var out bytes.Buffer
					limits := defaults()
					line := "echo " + want
					if j%5 == 4 {
						line, limits.TimeoutMS = line+"; sleep 60", 100
					}
					exit, err := h.Run(context.Background(), &Spec{Argv: []string{"/bin/sh", "-c", line}, Env: []string{"PATH=/usr/bin"}, Limits: limits, Stdout: &out})
					if err != nil || (out.String() != want+"\n" && limits.TimeoutMS > 100) || (exit.Cause == CauseTimeout) != (limits.TimeoutMS == 100) {
						t.Errorf("%s: %+v %v %q", want, exit, err, out.String())
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestEngineDies kills the engine at instants spread over a run and looks for
// what is left. The next start sweeps control groups.
func TestEngineDies(t *testing.T) {
	if os.Getenv("BELLJAR_TEST_ENGINE") != "" {
		h, err := Open(Config{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("engine ready")
		for {
			_, err := h.Run(context.Background(), &Spec{Argv: []string{"/bin/sh", "-c", "sleep 0.03; setsid sleep 60 & : " + os.Getenv("BELLJAR_TEST_ENGINE")}, Env: []string{"PATH=/usr/bin"}, Limits: defaults()})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	bothWays(t, func(t *testing.T, h *Host) {
		word := fmt.Sprintf("engine-%d", time.Now().UnixNano())
		for i := range 30 {
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestEngineDies$")
			cmd.Env = append(os.Environ(), "BELLJAR_TEST_ENGINE="+word)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var b [12]byte
			if _, err := io.ReadFull(out, b[:]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(i) * 1500 * time.Microsecond)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			gone(t, word)
			spawnersGone(t)
		}
		// The next start sweeps the groups; the leak check of bothWays looks for them.
		shell(t, open(t), "true")
	})
}

// spawnersGone fails if a spawner lives on without its engine.
func spawnersGone(t *testing.T) {
	t.Helper()
	var left []string
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = nil
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			status, _ := os.ReadFile("/proc/" + e.Name() + "/status")
			if bytes.HasPrefix(line, []byte("belljar-spawner")) && bytes.Contains(status, []byte("\nPPid:\t1\n")) {
				left = append(left, e.Name())
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("spawners without an engine: %v", left)
}

// TestThousandRuns leaves nothing: LeakCheck in bothWays looks at processes,
// mounts, descriptors and groups, this one at memory held by the groups.
func TestThousandRuns(t *testing.T) {
	testkit.Need(t, "userns")
	if testing.Short() {
		return
	}
	bothWays(t, func(t *testing.T, h *Host) {
		for i := range 1000 {
			if o := start(t, h, func(s *Spec) { s.Argv = []string{"/bin/true"} }); o.Wait != 0 {
				t.Fatalf("run %d: %+v", i, o.Exit)
			}
		}
	})
}

func TestNamedGroupMustWork(t *testing.T) {
	bothWays(t, func(t *testing.T, _ *Host) {
		var refusal *belljar.Refusal
		for _, parent := range []string{"x", "/a/../b", "/a/"} {
			if _, err := Open(Config{CgroupParent: parent}); !errors.As(err, &refusal) || refusal.Code != belljar.CodeBadConfig {
				t.Errorf("parent %q: %v", parent, err)
			}
		}
		h, err := Open(Config{CgroupParent: "/no-such-group"})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		_, err = h.Run(context.Background(), &Spec{Argv: []string{"/bin/true"}, Limits: defaults()})
		if !errors.As(err, &refusal) || refusal.Code != belljar.CodeBadConfig || !strings.Contains(refusal.Reason, "no-such-group") {
			t.Errorf("a missing group: %v", err)
		}
	})
}
