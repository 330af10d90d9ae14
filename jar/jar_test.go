package jar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/audit"
	"github.com/belljar/belljar/internal/engine"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/belljar/belljar/internal/testkit"
	"github.com/belljar/belljar/internal/toolchain"
	"github.com/belljar/belljar/internal/toolset"
	"github.com/google/go-cmp/cmp"
)

// warm makes what a process that uses sandboxes keeps for its life: the spawner's
// memory file.
var warm = sync.OnceValue(func() error {
	host, err := sandbox.Open(sandbox.Config{})
	if err != nil {
		return err
	}
	_, err = host.Probe(context.Background())
	return errors.Join(err, host.Close())
})

func leakCheck(t *testing.T) {
	t.Helper()
	if err := warm(); err != nil {
		t.Fatal(err)
	}
	testkit.LeakCheck(t)
}

// open opens a Jar whose state is the test's own.
func open(t *testing.T, opts ...Option) *Jar {
	t.Helper()
	j, err := Open(context.Background(), append([]Option{WithState(t.TempDir())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return j
}

func (j *Jar) mustRun(t *testing.T, req *belljar.Request, opts ...RunOption) *belljar.Result {
	t.Helper()
	res, err := j.Run(context.Background(), req, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestScriptCallsTools(t *testing.T) {
	testkit.Need(t, "python")
	leakCheck(t)
	dir := t.TempDir()
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), []byte(strings.Repeat("line\n", 1000)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	j := open(t, WithWorkspace(dir))
	told := map[string]int{}
	res := j.mustRun(t, &belljar.Request{Source: `
n = 0
for i in range(5):
    n += len(tools.read_file(path=f"f{i}.txt").splitlines())
print(n, "lines", flush=True)
try:
    tools.drop_table(name="users")
except RuntimeError as e:
    print(e)
`, Session: "s1"}, WithEvents(func(ev belljar.Event) {
		told[ev.Type+string(ev.State)]++
	}))
	if !res.OK || res.Stdout != "5000 lines\ntool 'drop_table' not available\n" || res.Stderr != "" {
		t.Fatalf("result %+v, error %v", res, res.Error)
	}
	if c := res.ToolCalls; c.Count != 6 || c.Denied != 0 || c.BytesKeptOut < 20000 || len(c.Calls) != 6 {
		t.Errorf("tool calls %+v", c)
	}
	if res.Isolation.Level != belljar.LevelNamespaces || len(res.Isolation.Protections) == 0 {
		t.Errorf("isolation %+v", res.Isolation)
	}
	if told["staterunning"] != 1 || told["call"] != 6 || told["stdout"] == 0 || told["stderr"] != 0 {
		t.Errorf("events %v", told)
	}
	records, err := j.Records(context.Background(), Filter{Session: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range records {
		if r.Run != res.ID || r.Caller != "go" {
			t.Errorf("record %+v", r)
		}
		names = append(names, r.Name+" "+r.Outcome)
	}
	want := []string{"execute_code exited", "ptc:drop_table error", "ptc:read_file ok", "ptc:read_file ok", "ptc:read_file ok", "ptc:read_file ok", "ptc:read_file ok"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	var metrics strings.Builder
	if err := j.Metrics().WriteText(&metrics); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`belljar_runs_total{kind="script",lang="python",status="exited"} 1`, `belljar_tool_calls_total{outcome="ok",tool="ptc:read_file"} 5`} {
		if !strings.Contains(metrics.String(), want) {
			t.Errorf("no %s in\n%s", want, metrics.String())
		}
	}
}

// The script is a program as any other.
func TestScriptIsPlainPython(t *testing.T) {
	testkit.Need(t, "python")
	j := open(t)
	for _, tt := range []struct {
		name     string
		req      belljar.Request
		stdout   string
		stderr   []string // parts
		exitCode int
	}{
		{"future", belljar.Request{Source: "from __future__ import annotations\nprint('ok')"}, "ok\n", nil, 0},
		{"inspect", belljar.Request{Source: "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))"}, "def f():\n    return 1\n\n", nil, 0},
		{"pickle", belljar.Request{Source: "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)"}, "True\n", nil, 0},
		{"argv and file", belljar.Request{Source: "import sys, os\nprint(sys.argv, __file__, __name__, os.getcwd())", Name: "digest.py", Args: []string{"a b", "-x"}}, "['digest.py', 'a b', '-x'] /workspace/digest.py __main__ /workspace\n", nil, 0},
		{"traceback", belljar.Request{Source: "def f():\n    return 1/0\n\nf()", Name: "sum.py"}, "", []string{`File "/workspace/sum.py", line 4, in <module>`, `File "/workspace/sum.py", line 2, in f`, "ZeroDivisionError"}, 1},
		{"exit code", belljar.Request{Source: "import sys\nprint('bye')\nsys.exit(-1)"}, "bye\n", nil, 255},
		{"unicode", belljar.Request{Source: "import sys\nprint('☕ 日本', sys.stdin.read(), sys.stdout.encoding)", Stdin: "é"}, "☕ 日本 é utf-8\n", nil, 0},
		{"siblings", belljar.Request{Source: "import helper\nfrom pkg.inner import v\nprint(helper.f(21), v)", Files: []belljar.File{
			{Name: "helper.py", Content: "def f(x): return 2*x"}, {Name: "pkg/__init__.py"}, {Name: "pkg/inner.py", Content: "v = 9"}}}, "42 9\n", nil, 0},
		{"environment", belljar.Request{Source: "import os\nprint(sorted(k for k in os.environ))", Env: map[string]string{"MODE": "x"}},
			"['HOME', 'LANG', 'LC_ALL', 'MODE', 'PATH', 'PWD', 'PYTHONPATH', 'PYTHONUNBUFFERED', 'TEMP', 'TERM', 'TMP', 'TMPDIR', 'TZ', 'USER']\n", nil, 0},
		{"no stdin", belljar.Request{Source: "import sys\nprint(repr(sys.stdin.read()))"}, "''\n", nil, 0},
		{"a child interpreter", belljar.Request{Source: "import subprocess, sys\nprint(subprocess.run(['python3', '-c', 'print(1)'], capture_output=True, text=True).stdout.strip())"}, "1\n", nil, 0},
		{"a snippet", belljar.Request{Kind: belljar.KindSnippet, Lang: "python", Source: "import sys\nprint('tools' in dir(__builtins__), any('belljar' in p for p in sys.path))"}, "False False\n", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := j.mustRun(t, &tt.req)
			if !res.OK || *res.ExitCode != tt.exitCode || res.Stdout != tt.stdout {
				t.Fatalf("%s, exit code %v, stdout %q, stderr %s, error %v", res.Status, res.ExitCode, res.Stdout, res.Stderr, res.Error)
			}
			for _, part := range tt.stderr {
				if !strings.Contains(res.Stderr, part) {
					t.Errorf("no %q in %s", part, res.Stderr)
				}
			}
			if tt.stderr == nil && res.Stderr != "" {
				t.Errorf("stderr %s", res.Stderr)
			}
		})
	}
}

func TestLimitsBite(t *testing.T) {
	testkit.Need(t, "python")
	leakCheck(t)
	j := open(t)
	few := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		name   string
		req    belljar.Request
		status belljar.Status
		stdout string // begins with
	}{
		{"time", belljar.Request{Source: "print('begun', flush=True)\nimport time\ntime.sleep(60)", Limits: belljar.LimitsRequest{TimeoutMS: few(1500)}}, belljar.StatusTimedOut, "begun\n"},
		{"a tool that is slower than the run", belljar.Request{Source: "print('asking', flush=True)\ntools.current_time()\nimport time\ntime.sleep(60)", Limits: belljar.LimitsRequest{TimeoutMS: few(2500)}}, belljar.StatusTimedOut, "asking\n"},
		{"output", belljar.Request{Source: "while True: print('x' * 99)", Limits: belljar.LimitsRequest{OutputBytes: few(100_000)}}, belljar.StatusOutputLimit, "xxx"},
		{"memory", belljar.Request{Source: "print('begun', flush=True)\nx = []\nwhile True: x.append(bytearray(1 << 20))", Limits: belljar.LimitsRequest{MemoryBytes: few(64 << 20)}}, belljar.StatusOutOfMemory, "begun\n"},
		{"a crash", belljar.Request{Source: "print('begun', flush=True)\nimport os\nos.kill(os.getpid(), 11)"}, belljar.StatusSignalled, "begun\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := j.mustRun(t, &tt.req)
			if res.Status != tt.status || !strings.HasPrefix(res.Stdout, tt.stdout) {
				t.Errorf("%s, stdout %.200q, stderr %.500s, error %v", res.Status, res.Stdout, res.Stderr, res.Error)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	testkit.Need(t, "python")
	leakCheck(t)
	cut := make(chan struct{})
	j := open(t, WithFunc("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		close(cut)
		return "late", nil
	}))
	ctx, cancel := context.WithCancel(context.Background())
	res, err := j.Run(ctx, &belljar.Request{Source: "print('asking', flush=True)\ntools.wait()"}, WithEvents(func(ev belljar.Event) {
		if ev.Type == "stdout" {
			time.AfterFunc(100*time.Millisecond, cancel) // the call is on its way by then, or is not made at all
		}
	}))
	if err != nil || res.Status != belljar.StatusCancelled || res.Stdout != "asking\n" || res.ToolCalls.Count != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	records, err := j.Records(context.Background(), Filter{Run: res.ID, Name: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records { // none, if the script was ended before it asked
		<-cut
		if r.Outcome != "cut_off" {
			t.Errorf("record %+v", r)
		}
	}
}

func TestFence(t *testing.T) {
	testkit.Need(t, "python")
	j := open(t, WithWorkspace(t.TempDir()))
	res := j.mustRun(t, &belljar.Request{Fence: []string{"current_time"}, Source: `
print(len(tools.current_time()) > 0)
try:
    tools.list_dir(path=".")
except RuntimeError as e:
    print(e, e.denied, e.tool)
`})
	want := "True\nBlocked by policy: tool 'list_dir' is outside this turn's tool allowlist (current_time) — work within the allowed tools. True list_dir\n"
	if res.Stdout != want || res.ToolCalls.Denied != 1 {
		t.Errorf("stdout %q, stderr %s, calls %+v", res.Stdout, res.Stderr, res.ToolCalls)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []Option
		want string
	}{
		{"unknown language", []Option{WithConfig(Config{Languages: toolchain.Config{"pyhton": {}}})}, "languages.pyhton: there is no such language; known are python. Correct"},
		{"relative interpreter", []Option{WithConfig(Config{Languages: toolchain.Config{"python": {Interpreter: "bin/python"}}})}, `languages.python.interpreter: "bin/python" is no absolute path`},
		{"policy", []Option{WithConfig(Config{Policy: policy.Config{MaxCallsPerRun: -1}})}, "policy.max_calls_per_run: -1 is negative"},
		{"limits", []Option{WithConfig(Config{Limits: engine.LimitsConfig{Queue: -1}})}, "limits.queue: is negative. Correct"},
		{"level", []Option{WithConfig(Config{Sandbox: sandbox.Config{Minimum: "paper"}})}, `"paper" is no isolation level`},
		{"workspace", []Option{WithWorkspace("/nowhere/at/all")}, "The workspace '/nowhere/at/all' does not exist. Name a folder"},
		{"workspace that is a file", []Option{WithWorkspace("/etc/hostname")}, "The workspace '/etc/hostname' is not a folder. Name a folder"},
		{"relative python", []Option{WithPython("bin/python")}, `"bin/python" is no absolute path. Correct`},
		{"negative calls", []Option{WithMaxCalls(-1)}, "policy.max_calls_per_run: -1 is negative"},
		{"empty extra tool", []Option{WithExtraTools("")}, "policy.extra_tools: entry 1 is empty"},
		{"mcp", []Option{WithMCPConfig("/nowhere/mcp.json")}, "/nowhere/mcp.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.LeakCheck(t)
			_, err := Open(context.Background(), append(tt.opts, WithState(t.TempDir()))...)
			var refusal *belljar.Refusal
			if !errors.As(err, &refusal) || refusal.Code != belljar.CodeBadConfig || !strings.Contains(refusal.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	if _, err := Open(ctx); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
}

// Opening and asking what there is makes nothing on the disk and starts nothing.
func TestLazy(t *testing.T) {
	testkit.LeakCheck(t)
	state := filepath.Join(t.TempDir(), "state")
	j, err := Open(context.Background(), WithState(state), WithWorkspace(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if tools, errs := j.Offered(context.Background(), nil, nil); len(errs) > 0 || len(tools) != 5 {
		t.Errorf("%d tools, %v", len(tools), errs)
	}
	if got := j.LanguageOf("a.py", "") + j.LanguageOf("x", "#!/usr/bin/env python3\n") + j.LanguageOf("x", ""); got != "pythonpython" {
		t.Errorf("languages %s", got)
	}
	if standard, ceiling := j.Bounds(belljar.KindScript, "python"); standard.Timeout != 30*time.Second || ceiling.Timeout < standard.Timeout {
		t.Errorf("bounds %v, %v", standard, ceiling)
	}
	if err := j.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state folder: %v", err)
	}
}

func TestClosed(t *testing.T) {
	j, err := Open(context.Background(), WithState(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := j.Run(context.Background(), &belljar.Request{Source: "1"}); !errors.Is(err, ErrClosed) {
		t.Errorf("Run: %v", err)
	}
	if _, err := j.Records(context.Background(), Filter{}); !errors.Is(err, ErrClosed) {
		t.Errorf("Records: %v", err)
	}
}

// A journal that cannot be opened refuses the run; where that is accepted the run
// says so.
func TestJournalElsewhere(t *testing.T) {
	testkit.Need(t, "python")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Audit: audit.Config{Path: filepath.Join(file, "journal.db")}}
	res := open(t, WithConfig(cfg)).mustRun(t, &belljar.Request{Source: "print(1)"})
	if res.Status != belljar.StatusRefused || res.Refusal.Code != belljar.CodeAudit || res.Refusal.Hint == "" {
		t.Errorf("result %+v", res)
	}
	cfg.Audit.Required = new(bool)
	res = open(t, WithConfig(cfg)).mustRun(t, &belljar.Request{Source: "print(1)"})
	if !res.OK || res.Unrecorded == "" || res.Stdout != "1\n" {
		t.Errorf("result %+v", res)
	}
}

// Values that upstream servers are configured with stay out of the journal.
func TestSecrets(t *testing.T) {
	testkit.Need(t, "python")
	cfg := Config{MCPServers: map[string]toolset.Server{"s": {Command: "/bin/false", Env: map[string]string{"KEY": "canary-1234567"}}}}
	j := open(t, WithConfig(cfg))
	res := j.mustRun(t, &belljar.Request{Source: "print('the key is canary-1234567')"})
	if res.Stdout != "the key is canary-1234567\n" {
		t.Errorf("stdout %q, error %v", res.Stdout, res.Error)
	}
	records, err := j.Records(context.Background(), Filter{})
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	text, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "canary-1234567") {
		t.Errorf("the journal holds a secret: %s", text)
	}
}

func TestChecks(t *testing.T) {
	testkit.Need(t, "python")
	j := open(t, WithWorkspace(t.TempDir()))
	var names []string
	for _, c := range j.Checks(context.Background()) {
		names = append(names, c.Name)
		if c.Meaning == "" || c.State == belljar.CheckFail {
			t.Errorf("check %+v", c)
		}
	}
	got := strings.Join(names, ",")
	for _, want := range []string{"language python", "workspace", "policy"} {
		if !strings.Contains(got, want) {
			t.Errorf("no check %q in %s", want, got)
		}
	}
	broken := open(t, WithConfig(Config{Audit: audit.Config{Retain: "never"}}))
	found := false
	for _, c := range broken.Checks(context.Background()) {
		found = found || c.State == belljar.CheckFail && c.Name == "audit journal" && c.Remedy != ""
	}
	if !found {
		t.Error("a broken journal has no check")
	}
}

func TestLanguages(t *testing.T) {
	testkit.Need(t, "python")
	j := open(t)
	for _, kind := range []belljar.Kind{belljar.KindScript, belljar.KindSnippet} {
		if diff := cmp.Diff([]string{"python"}, j.Languages(context.Background(), kind)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

// Many runs at once through everything: each gets its own answers.
func TestHammer(t *testing.T) {
	testkit.Need(t, "python")
	leakCheck(t)
	j := open(t, WithFunc("echo", "Gives back.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	}))
	runner := j.Runner()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := range 5 {
				word := fmt.Sprintf("%d-%d", i, k)
				res, err := runner.Run(context.Background(), &belljar.Request{Source: fmt.Sprintf(`
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as p:
    print(all(r == "%[1]s" for r in p.map(lambda _: tools.echo(text="%[1]s"), range(20))), "%[1]s")
`, word)}, nil)
				if err != nil || res.Stdout != "True "+word+"\n" || res.ToolCalls.Count != 20 {
					t.Errorf("%s: %+v, %v", word, res, err)
				}
			}
		})
	}
	wg.Wait()
}
