package output

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func ptr[T any](v T) *T { return &v }

// limits are the defaults of a script.
var limits = belljar.Limits{TimeoutMS: 30000, MemoryBytes: 512 << 20, OutputBytes: 16 << 20}

// run makes a result as the engine would.
func run(status belljar.Status, stdout, stderr string, change ...func(*belljar.Result)) *belljar.Result {
	r := &belljar.Result{ID: "run_x", Kind: belljar.KindScript, Status: status, Stage: belljar.StageRun, Stdout: stdout, Stderr: stderr, Limits: limits}
	r.Output.Stdout.Bytes, r.Output.Stderr.Bytes = int64(len(stdout)), int64(len(stderr))
	if status == belljar.StatusExited {
		r.ExitCode = ptr(0)
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func code(n int) func(*belljar.Result) { return func(r *belljar.Result) { r.ExitCode = &n } }

func signal(n int, name string) func(*belljar.Result) {
	return func(r *belljar.Result) { r.Signal, r.SignalName, r.ExitCode = &n, &name, ptr(128+n) }
}

func denied(d ...belljar.Denial) func(*belljar.Result) {
	return func(r *belljar.Result) { r.Denials = d }
}

func refused(c belljar.Code, reason, hint string) func(*belljar.Result) {
	return func(r *belljar.Result) { r.Refusal = &belljar.Refusal{Code: c, Reason: reason, Hint: hint} }
}

func faulty(what string) func(*belljar.Result) {
	return func(r *belljar.Result) { r.Fault = "fault_abc"; r.Error = ptr(Explain(r, what)) }
}

const traceback = `Traceback (most recent call last):
  File "/workspace/main.py", line 3, in <module>
    raise ValueError("no such column: prize")
ValueError: no such column: prize
`

func lines(n int, form string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form+"\n", i)
	}
	return b.String()
}

var scripts = []struct {
	name  string
	res   *belljar.Result
	chars int
}{
	{"success", run("exited", "\n  42 rows\n\n", ""), 0},
	{"success without output", run("exited", " \n", ""), 0},
	{"success with stderr", run("exited", "42 rows\n", "DeprecationWarning: old\n"), 0},
	{"success with stderr only", run("exited", "", "DeprecationWarning: old\n"), 0},
	{"failure", run("exited", "", traceback, code(1)), 0},
	{"failure without stderr", run("exited", "", "", code(3)), 0},
	{"failure after output", run("exited", "read 3 files\n", traceback, code(1)), 0},
	{"failure with denials", run("exited", "read 3 files\n", "PermissionError: [Errno 1] Operation not permitted\n", code(1), denied(
		belljar.Denial{Kind: "syscall", What: "mount", Explain: "mount is not allowed in a sandbox."},
		belljar.Denial{Kind: "path", What: "/etc/shadow", Explain: "/etc/shadow is not visible in a sandbox.", Likely: true})), 0},
	{"signal", run("signalled", "before\n", "", signal(11, "SIGSEGV")), 0},
	{"abort", run("signalled", "", "terminate called\n", signal(6, "SIGABRT")), 0},
	{"time", run("timed_out", "", ""), 0},
	{"time with output", run("timed_out", "step 1\nstep 2\n", "slow\n"), 0},
	{"time of less than a second", run("timed_out", "", "", func(r *belljar.Result) { r.Limits.TimeoutMS = 1500 }), 0},
	{"memory", run("out_of_memory", "loaded\n", ""), 0},
	{"output", run("output_limit", "xxxxxxxx\n", ""), 0},
	{"cancelled", run("cancelled", "step 1\n", ""), 0},
	{"cancelled before it began", run("cancelled", "", "", func(r *belljar.Result) { r.Stage = belljar.StageAdmission }), 0},
	{"empty source", run("refused", "", "", refused("empty_source", "execute_code called with empty code.", "Send the program as source.")), 0},
	{"refusal", run("refused", "", "", refused("isolation_unavailable", "This host cannot give the isolation level namespaces: user namespaces are off.", "Allow them, or accept the level landlock.")), 0},
	{"fault", run("failed", "", "", faulty("the sandbox could not be started")), 0},
	{"fault after the run", run("failed", "42 rows\n", "", faulty("the run ended, but its record could not be written")), 0},
	{"long output", run("exited", lines(200, "row %03d of the table"), ""), 400},
	{"long output with stderr", run("exited", lines(200, "row %03d of the table"), "hm\n"), 400},
	{"long output that was not kept", run("exited", lines(200, "row %03d of the table"), "", func(r *belljar.Result) {
		r.Output.Stdout = belljar.Output{Bytes: 5 << 20, Truncated: true}
	}), 400},
	{"long traceback", run("exited", "", lines(200, "  File \"a.py\", line %03d")+"RecursionError: too deep\n", code(1)), 400},
	{"both long", run("exited", lines(200, "row %03d"), lines(200, "warning %03d")+"ValueError: last\n", code(1)), 700},
	{"long output of wide characters", run("exited", strings.Repeat("日本語", 400), ""), 400},
	{"many denials", run("exited", "", "EPERM\n", code(1), denied(
		belljar.Denial{Explain: strings.Repeat("a", 300)}, belljar.Denial{Explain: "b"}, belljar.Denial{Explain: "c"},
		belljar.Denial{Explain: "d"}, belljar.Denial{Explain: "e"}, belljar.Denial{Explain: "f"}, belljar.Denial{Explain: "g"})), 0},
}

func TestScript(t *testing.T) {
	var b strings.Builder
	for _, s := range scripts {
		fmt.Fprintf(&b, "=== %s\n%s\n", s.name, Script(s.res, Options{Chars: s.chars}))
	}
	golden(t, "script.golden", b.String())
}

func TestExplain(t *testing.T) {
	var b strings.Builder
	for _, s := range scripts {
		fmt.Fprintf(&b, "=== %s\n%s\n", s.name, Explain(s.res, "the harness broke"))
	}
	compile := run("exited", "", "", code(1), func(r *belljar.Result) { r.Stage, r.Kind = belljar.StageCompile, belljar.KindSnippet })
	fmt.Fprintf(&b, "=== compile error\n%s\n", Explain(compile, ""))
	snippet := run("failed", "", "", faulty("x"), func(r *belljar.Result) { r.Kind = belljar.KindSnippet })
	fmt.Fprintf(&b, "=== fault of a snippet\n%s\n", Explain(snippet, "the harness broke"))
	golden(t, "explain.golden", b.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", name, diff)
	}
}

// Whatever happens, the text keeps to its budget and shows both ends.
func TestScriptBudget(t *testing.T) {
	long := lines(5000, "line %d")
	for _, status := range []belljar.Status{"exited", "signalled", "timed_out", "out_of_memory", "output_limit", "cancelled", "failed"} {
		for _, chars := range []int{1, 400, 1000, 6000} {
			res := run(status, "FIRST\n"+long+"LAST\n", "EFIRST\n"+long+"ELAST\n", code(1))
			text := Script(res, Options{Chars: chars})
			if n := utf8.RuneCountInString(text); n > max(chars, minChars) {
				t.Errorf("%s in %d characters: %d", status, chars, n)
			}
			for _, want := range []string{"FIRST", "\nLAST", "EFIRST", "\nELAST", "…[truncated to "} {
				if chars >= 1000 && !strings.Contains(text, want) {
					t.Errorf("%s in %d characters: no %q in\n%s", status, chars, want, text)
				}
			}
		}
	}
}

func FuzzScript(f *testing.F) {
	f.Add("exited", 1, "out", "err", 500, "why")
	f.Add("timed_out", 0, strings.Repeat("日", 3000), strings.Repeat("x\n", 3000), 400, "")
	f.Fuzz(func(t *testing.T, status string, exit int, stdout, stderr string, chars int, explain string) {
		chars = 1 + abs(chars)%20000
		res := run(belljar.Status(status), stdout, stderr, code(exit), denied(belljar.Denial{Explain: explain}))
		text := Script(res, Options{Chars: chars})
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		if n := utf8.RuneCountInString(text); n > max(chars, minChars) {
			t.Fatalf("%d characters, budget %d", n, chars)
		}
		if text == "" {
			t.Fatal("no text")
		}
	})
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 100: "100 bytes", 1024: "1 KiB", 1536: "1.5 KiB", 512 << 20: "512 MiB", 3 << 30: "3 GiB", 1 << 60: "1048576 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}
