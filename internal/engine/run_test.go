package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/belljar/belljar/internal/toolchain"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRunScript(t *testing.T) {
	w := newWorld(t)
	w.program = prints("42 rows\n")
	req := script("print('42 rows')")
	req.Args, req.Stdin, req.Env = []string{"a"}, "in", map[string]string{"MODE": "x"}
	req.Files = []belljar.File{{Name: "data/a.bin", Content: "AAE=", Encoding: "base64"}}
	res := w.run(context.Background(), req)
	zero, mem := 0, int64(512<<20)
	want := &belljar.Result{
		ID: res.ID, OK: true, Status: "exited", Stage: "run", Kind: "script", Lang: "python", ExitCode: &zero, Stdout: "42 rows\n",
		Output:    belljar.Outputs{Stdout: belljar.Output{Bytes: 8}},
		Usage:     belljar.Usage{WallMS: 7, CPUMS: 4, PeakMemoryBytes: 9e6, Processes: 1},
		Limits:    belljar.Limits{TimeoutMS: 30000, MemoryBytes: mem, Processes: 64, DiskBytes: 64 << 20, Inodes: 10000, OutputBytes: 16 << 20, OpenFiles: 1024},
		Isolation: belljar.Isolation{Level: "namespaces", Protections: []string{"userns"}, Missing: []belljar.Missing{}, Network: "none"},
		Denials:   []belljar.Denial{}, Findings: []belljar.Finding{}, Artifacts: []belljar.Artifact{}, ToolCalls: belljar.ToolCalls{Calls: []belljar.ToolCall{}},
		Timing: belljar.Timing{AdmissionMS: res.Timing.AdmissionMS, StartMS: 2, RunMS: 7},
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}

	spec := w.specs[0]
	if diff := cmp.Diff([]string{"/usr/bin/python3.11", "main.py", "a"}, spec.Argv); diff != "" {
		t.Errorf("argv: %s", diff)
	}
	wantEnv := []string{
		"HOME=/workspace", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "MODE=x", "PATH=/usr/local/bin:/usr/bin:/bin", "PWD=/workspace",
		"PYTHONPATH=/opt/belljar/python", "PYTHONUNBUFFERED=1", "TEMP=/tmp", "TERM=dumb", "TMP=/tmp", "TMPDIR=/tmp", "TZ=UTC", "USER=belljar",
	}
	if diff := cmp.Diff(wantEnv, spec.Env); diff != "" {
		t.Errorf("env: %s", diff)
	}
	wantFiles := []sandbox.File{{Name: "main.py", Data: []byte("print('42 rows')")}, {Name: "data/a.bin", Data: []byte{0, 1}}}
	if diff := cmp.Diff(wantFiles, spec.Files); diff != "" {
		t.Errorf("files: %s", diff)
	}
	if len(spec.Assets) != 2 || spec.Bridge == nil || string(spec.Stdin) != "in" || spec.Minimum != belljar.LevelNamespaces {
		t.Errorf("spec %+v", spec)
	}

	records := w.journal.records()
	wantRecord := belljar.Record{Run: res.ID, Session: "ptc", Caller: "test", Event: "run", Name: "execute_code", Outcome: "exited", Summary: "42 rows", OK: true}
	if diff := cmp.Diff([]belljar.Record{wantRecord}, records, cmpopts.IgnoreFields(belljar.Record{}, "Time", "DurationMS", "Args")); diff != "" {
		t.Errorf("records: %s", diff)
	}
	if args := records[0].Args; !json.Valid([]byte(args)) || strings.Contains(args, "42 rows") || !strings.Contains(args, `"source_sha256":"`) {
		t.Errorf("args %s", args)
	}
	if diff := cmp.Diff([]string{"run script python exited"}, w.metrics.lines); diff != "" {
		t.Errorf("metrics: %s", diff)
	}
}

// A snippet has no tools: no bridge, no assets, nothing on its path.
func TestRunSnippet(t *testing.T) {
	w := newWorld(t)
	w.program = prints("hi\n")
	res := w.run(context.Background(), &belljar.Request{Kind: belljar.KindSnippet, Lang: "PY", Source: "print('hi')", Name: "hello.py", Session: "s1"})
	if !res.OK || res.Lang != "python" || res.Limits.TimeoutMS != 5000 {
		t.Errorf("result %+v", res)
	}
	spec := w.specs[0]
	if spec.Bridge != nil || spec.Assets != nil || strings.Contains(strings.Join(spec.Env, "\n"), "PYTHONPATH") {
		t.Errorf("spec %+v", spec)
	}
	if diff := cmp.Diff([]string{"/usr/bin/python3.11", "hello.py"}, spec.Argv); diff != "" {
		t.Error(diff)
	}
	if r := w.journal.records()[0]; r.Name != "run_snippet" || r.Session != "s1" {
		t.Errorf("record %+v", r)
	}
}

func TestPathOfToolchain(t *testing.T) {
	w := newWorld(t)
	w.find = func(context.Context, *language.Language) (*toolchain.Toolchain, error) {
		return &toolchain.Toolchain{Path: "/srv/venv/bin/python", Folders: []string{"/srv/venv"}}, nil
	}
	w.run(context.Background(), script("1"))
	if diff := cmp.Diff([]string{"/srv/venv"}, w.specs[0].Toolchain); diff != "" {
		t.Error(diff)
	}
	if env := strings.Join(w.specs[0].Env, "\n"); !strings.Contains(env, "PATH=/srv/venv/bin:/usr/local/bin:") {
		t.Error(env)
	}
}

// How a run ends follows from who ended it and the wait status, and nothing else.
func TestClassify(t *testing.T) {
	exited := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	const dumped = 0x80
	for _, tt := range []struct {
		name   string
		cause  sandbox.Cause
		wait   syscall.WaitStatus
		status belljar.Status
		ok     bool
		code   int
		signal int // 0: none
		sig    string
		error  string
	}{
		{"zero", sandbox.CauseNone, exited(0), "exited", true, 0, 0, "", ""},
		{"a code", sandbox.CauseNone, exited(255), "exited", true, 255, 0, "", ""},
		{"the code of a timeout", sandbox.CauseNone, exited(124), "exited", true, 124, 0, "", ""},
		{"the code of a kill", sandbox.CauseNone, exited(137), "exited", true, 137, 0, "", ""},
		{"a crash", sandbox.CauseNone, 11, "signalled", true, 139, 11, "SIGSEGV", ""},
		{"a crash with a core", sandbox.CauseNone, 6 | dumped, "signalled", true, 134, 6, "SIGABRT", ""},
		{"its own kill", sandbox.CauseNone, 9, "signalled", true, 137, 9, "SIGKILL", ""},
		{"a real-time signal", sandbox.CauseNone, 36, "signalled", true, 164, 36, "SIGRTMIN+2", ""},
		{"a signal of the library", sandbox.CauseNone, 32, "signalled", true, 160, 32, "SIG32", ""},
		{"timeout", sandbox.CauseTimeout, 9, "timed_out", false, 137, 9, "SIGKILL", "the program did not finish within 30s and was killed; do less in one run or allow more time"},
		{"timeout of one that just ended", sandbox.CauseTimeout, exited(0), "timed_out", false, 0, 0, "", "the program did not finish within 30s and was killed; do less in one run or allow more time"},
		{"memory", sandbox.CauseMemory, 9, "out_of_memory", false, 137, 9, "SIGKILL", "the program used more than its 512 MiB of memory and was killed; work on smaller pieces or allow more"},
		{"memory of a child", sandbox.CauseMemory, exited(1), "out_of_memory", false, 1, 0, "", "the program used more than its 512 MiB of memory and was killed; work on smaller pieces or allow more"},
		{"output", sandbox.CauseOutput, 9, "output_limit", false, 137, 9, "SIGKILL", "the program wrote more than 16 MiB of output and was killed; print only what matters"},
		{"cancelled", sandbox.CauseCancel, 9, "cancelled", false, 137, 9, "SIGKILL", "the run was cancelled before the program had finished"},
		{"cancelled on a signal of its own", sandbox.CauseCancel, 15, "cancelled", false, 143, 15, "SIGTERM", "the run was cancelled before the program had finished"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.program = exits(tt.cause, tt.wait)
			res := w.run(context.Background(), script("1"))
			want := belljar.Result{Status: tt.status, Stage: "run", OK: tt.ok, ExitCode: &tt.code}
			if tt.signal != 0 {
				want.Signal, want.SignalName = &tt.signal, &tt.sig
			}
			if tt.error != "" {
				want.Error = &tt.error
			}
			got := belljar.Result{Status: res.Status, Stage: res.Stage, OK: res.OK, ExitCode: res.ExitCode, Signal: res.Signal, SignalName: res.SignalName, Error: res.Error}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r := w.journal.records()[0]; r.Outcome != string(tt.status) || r.OK != tt.ok {
				t.Errorf("record %+v", r)
			}
		})
	}
}

// Output up to the end is kept on every way out.
func TestOutputIsKept(t *testing.T) {
	for name, end := range map[string]func() (*sandbox.Exit, error){
		"timeout": func() (*sandbox.Exit, error) { x := good(); x.Cause, x.Wait = sandbox.CauseTimeout, 9; return x, nil },
		"fault":   func() (*sandbox.Exit, error) { return nil, errDisk },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.program = func(_ context.Context, s *sandbox.Spec, _ bridge.Handler) (*sandbox.Exit, error) {
				fmt.Fprint(s.Stdout, "out")
				fmt.Fprint(s.Stderr, "err\xff")
				return end()
			}
			res := w.run(context.Background(), script("1"))
			if res.OK || res.Stdout != "out" || res.Stderr != "err\ufffd" || res.Output.Stderr.Bytes != 4 {
				t.Errorf("result %+v", res)
			}
		})
	}
}

// waysOut is every way out of the pipeline. Each leaves one record and one metric.
var waysOut = []struct {
	name   string
	change func(w *world)
	req    *belljar.Request
	cancel bool
	status belljar.Status
	stage  belljar.Stage
	code   belljar.Code
	what   string // a part of the error
	logged bool
}{
	{name: "a good run", status: "exited", stage: "run"},
	{name: "no request", req: &belljar.Request{}, status: "refused", stage: "admission", code: "empty_source", what: "execute_code called with empty code"},
	{name: "policy", change: func(w *world) { w.policy.Deny = []string{"execute_code"} }, status: "refused", stage: "admission", code: "policy_denied", what: "disabled by policy"},
	{name: "cancelled before it began", cancel: true, status: "cancelled", stage: "admission", what: "cancelled"},
	{name: "no toolchain", change: func(w *world) {
		w.find = func(context.Context, *language.Language) (*toolchain.Toolchain, error) {
			return nil, belljar.Refuse(belljar.CodeNoToolchain, "Install it.", "no python.")
		}
	}, status: "refused", stage: "toolchain", code: "no_toolchain", what: "no python. Install it."},
	{name: "a broken toolchain", change: func(w *world) {
		w.find = func(context.Context, *language.Language) (*toolchain.Toolchain, error) { return nil, errDisk }
	}, status: "failed", stage: "toolchain", what: "the toolchain could not be looked at", logged: true},
	{name: "no bridge", change: func(w *world) { w.open = func() error { return errDisk } }, status: "failed", stage: "run", what: "the bridge for tool calls could not be opened", logged: true},
	{name: "isolation", change: func(w *world) {
		w.program = fails(fmt.Errorf("start: %w", belljar.Refuse(belljar.CodeIsolation, "Allow it.", "no user namespaces.")))
	}, status: "refused", stage: "run", code: "isolation_unavailable", what: "no user namespaces. Allow it."},
	{name: "the sandbox fails", change: func(w *world) { w.program = fails(errDisk) }, status: "failed", stage: "run", what: "the sandbox could not run the program", logged: true},
	{name: "the sandbox panics", change: func(w *world) {
		w.program = func(context.Context, *sandbox.Spec, bridge.Handler) (*sandbox.Exit, error) {
			panic("index out of range")
		}
	}, status: "failed", stage: "run", what: "the engine met an error of its own", logged: true},
	{name: "the toolchain panics", change: func(w *world) {
		w.find = func(context.Context, *language.Language) (*toolchain.Toolchain, error) { panic("nil map") }
	}, status: "failed", stage: "toolchain", what: "the engine met an error of its own", logged: true},
	{name: "cancelled in the sandbox before the start", change: func(w *world) {
		w.program = func(ctx context.Context, _ *sandbox.Spec, _ bridge.Handler) (*sandbox.Exit, error) {
			w.cancel(errors.New("client went away"))
			return nil, context.Cause(ctx)
		}
	}, status: "cancelled", stage: "admission", what: "cancelled"},
	{name: "timed out", change: func(w *world) { w.program = exits(sandbox.CauseTimeout, 9) }, status: "timed_out", stage: "run", what: "within 30s"},
}

func TestEveryWayOut(t *testing.T) {
	for _, tt := range waysOut {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.change != nil {
				tt.change(w)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			w.cancel = cancel
			if tt.cancel {
				cancel(errors.New("client went away"))
			}
			req := tt.req
			if req == nil {
				req = script("print(1)")
			}
			res := w.run(ctx, req)
			if res.Status != tt.status || res.Stage != tt.stage {
				t.Errorf("%s at %s, want %s at %s", res.Status, res.Stage, tt.status, tt.stage)
			}
			if (res.Refusal == nil) != (tt.code == "") || res.Refusal != nil && res.Refusal.Code != tt.code {
				t.Errorf("refusal %+v, want code %q", res.Refusal, tt.code)
			}
			if tt.what != "" && !strings.Contains(*res.Error, tt.what) {
				t.Errorf("error %q does not say %q", *res.Error, tt.what)
			}
			if tt.status != "exited" && tt.status != "timed_out" && res.ExitCode != nil {
				t.Errorf("exit code %d of what did not run", *res.ExitCode)
			}
			records := w.journal.records()
			if len(records) != 1 {
				t.Fatalf("%d records", len(records))
			}
			if r := records[0]; r.Outcome != string(tt.status) || r.Code != string(tt.code) || r.Run != res.ID || r.OK != res.OK || !strings.Contains(r.Summary, tt.what) {
				t.Errorf("record %+v", r)
			}
			if len(w.metrics.lines) != 1 || !strings.HasSuffix(w.metrics.lines[0], " "+string(tt.status)) {
				t.Errorf("metrics %q", w.metrics.lines)
			}
			log := w.log.String()
			if n := strings.Count(log, "fault_"); (n == 1) != tt.logged {
				t.Errorf("log:\n%s", log)
			}
			if tt.logged {
				if !strings.Contains(log, res.Fault) || !strings.Contains(*res.Error, res.Fault) {
					t.Errorf("fault %q is not in the log or the error:\n%s\n%s", res.Fault, log, *res.Error)
				}
				for _, inside := range []string{"disk full", "index out of range", "nil map", "goroutine"} {
					if strings.Contains(*res.Error, inside) {
						t.Errorf("the error shows our inside: %s", *res.Error)
					}
				}
			}
		})
	}
}

// What the journal cannot take must not pass for a good run, unless the operator
// accepted that.
func TestJournalFails(t *testing.T) {
	down := belljar.Refuse(belljar.CodeAudit, "Free some space.", "the journal /x is full.")
	calls := func(_ context.Context, s *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		_, err := h.Call(context.Background(), "read_file", json.RawMessage(`{}`))
		fmt.Fprintf(s.Stdout, "called: %v", err)
		return good(), nil
	}
	for _, tt := range []struct {
		name       string
		journal    *journal
		optional   bool
		program    program
		status     belljar.Status
		what       string
		unrecorded string
		started    bool
		stdout     string
	}{
		{name: "not ready", journal: &journal{ready: down}, status: "refused", what: "the journal /x is full. Free some space."},
		{name: "not ready, for an unnamed reason", journal: &journal{ready: errDisk}, status: "refused", what: "the run cannot be recorded, so it was not started."},
		{name: "not ready, accepted", journal: &journal{ready: down, append: errDisk}, optional: true, program: calls, status: "exited", unrecorded: "the journal /x is full.", started: true, stdout: "called: <nil>"},
		{name: "flush fails", journal: &journal{flush: errDisk}, status: "failed", what: "the run ended, but its record could not be written", started: true, stdout: "done"},
		{name: "flush fails, accepted", journal: &journal{flush: errDisk}, optional: true, status: "exited", unrecorded: "the journal could not take the record; the log says why", started: true, stdout: "done"},
		{name: "append fails in the middle", journal: &journal{append: errDisk}, program: calls, status: "failed", what: "its record could not be written", started: true, stdout: "called: the call could not be recorded, so its answer is withheld"},
		{name: "append fails in the middle, accepted", journal: &journal{append: errDisk}, optional: true, program: calls, status: "exited", unrecorded: "the journal could not take the record; the log says why", started: true, stdout: "called: <nil>"},
		{name: "the journal panics", journal: &journal{panics: true}, program: calls, status: "failed", what: "its record could not be written", started: true, stdout: "called: the call could not be recorded, so its answer is withheld"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.journal, w.cfg.AuditOptional = tt.journal, tt.optional
			w.program = prints("done")
			if tt.program != nil {
				w.program = tt.program
			}
			res := w.run(context.Background(), script("1"))
			if res.Status != tt.status || res.Unrecorded != tt.unrecorded || res.Stdout != tt.stdout || (len(w.specs) > 0) != tt.started {
				t.Errorf("status %s, unrecorded %q, stdout %q, started %v", res.Status, res.Unrecorded, res.Stdout, len(w.specs) > 0)
			}
			if tt.what != "" && (res.Error == nil || !strings.Contains(*res.Error, tt.what)) {
				t.Errorf("error %v", res.Error)
			}
			if tt.status == "refused" && res.Refusal.Code != belljar.CodeAudit {
				t.Errorf("refusal %+v", res.Refusal)
			}
		})
	}
}

// A journal that cannot be opened for what is configured is told once, by the
// refusal, whatever its code is.
func TestUnusableJournalIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.journal = &journal{
		ready:  belljar.Refuse(belljar.CodeBadConfig, "Use days.", "audit.retain: \"x\" is no time to keep records."),
		append: errDisk,
	}
	res := w.run(context.Background(), script("1"))
	if res.Status != belljar.StatusRefused || res.Refusal.Code != belljar.CodeBadConfig {
		t.Errorf("status %s, refusal %v", res.Status, res.Refusal)
	}
	if log := w.log.String(); log != "" {
		t.Errorf("logged too: %s", log)
	}
}

// One call recorded and the next one lost: the run is not a good one though its own
// record is there.
func TestLostCall(t *testing.T) {
	w := newWorld(t)
	w.program = func(_ context.Context, s *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		w.journal.append = errDisk
		_, err := h.Call(context.Background(), "read_file", json.RawMessage(`{}`))
		w.journal.append = nil
		return good(), errors.Unwrap(err)
	}
	res := w.run(context.Background(), script("1"))
	if res.Status != belljar.StatusFailed {
		t.Errorf("status %s", res.Status)
	}
}

func TestNilRequest(t *testing.T) {
	if res := newWorld(t).run(context.Background(), nil); res.Status != belljar.StatusRefused {
		t.Errorf("status %s", res.Status)
	}
}

// A request is the caller's: it is not changed.
func TestRequestIsNotChanged(t *testing.T) {
	req := &belljar.Request{Source: "1", Files: []belljar.File{{Name: "a", Content: "b"}}, Tools: []string{"read_file"}}
	before, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	newWorld(t).run(context.Background(), req)
	after, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Error(diff)
	}
}
