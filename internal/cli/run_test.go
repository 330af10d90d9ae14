package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/google/go-cmp/cmp"
)

func TestExitCode(t *testing.T) {
	code := func(n int) *int { return &n }
	tests := []struct {
		name string
		res  belljar.Result
		want int
	}{
		{"own end", belljar.Result{Status: belljar.StatusExited, Stage: belljar.StageRun, ExitCode: code(0)}, 0},
		{"own code", belljar.Result{Status: belljar.StatusExited, Stage: belljar.StageRun, ExitCode: code(124)}, 124},
		{"signal", belljar.Result{Status: belljar.StatusSignalled, Stage: belljar.StageRun, ExitCode: code(139)}, 139},
		{"no code", belljar.Result{Status: belljar.StatusExited, Stage: belljar.StageRun}, 125},
		{"compile", belljar.Result{Status: belljar.StatusExited, Stage: belljar.StageCompile, ExitCode: code(1)}, 123},
		{"compiler died", belljar.Result{Status: belljar.StatusSignalled, Stage: belljar.StageCompile, ExitCode: code(139)}, 123},
		{"compile bomb", belljar.Result{Status: belljar.StatusTimedOut, Stage: belljar.StageCompile}, 124},
		{"timeout", belljar.Result{Status: belljar.StatusTimedOut, Stage: belljar.StageRun}, 124},
		{"memory", belljar.Result{Status: belljar.StatusOutOfMemory, Stage: belljar.StageRun, ExitCode: code(1)}, 137},
		{"output", belljar.Result{Status: belljar.StatusOutputLimit, Stage: belljar.StageRun}, 137},
		{"cancelled", belljar.Result{Status: belljar.StatusCancelled, Stage: belljar.StageRun}, 130},
		{"fault", belljar.Result{Status: belljar.StatusFailed}, 125},
		{"an unknown status", belljar.Result{Status: "new"}, 125},
		{"refused without a reason", belljar.Result{Status: belljar.StatusRefused}, 126},
		{"no toolchain", belljar.Result{Status: belljar.StatusRefused, Refusal: &belljar.Refusal{Code: belljar.CodeNoToolchain}}, 127},
		{"an unknown code", belljar.Result{Status: belljar.StatusRefused, Refusal: &belljar.Refusal{Code: "new"}}, 126},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitCode(&tt.res); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
	for c, info := range belljar.Codes {
		res := belljar.Result{Status: belljar.StatusRefused, Refusal: &belljar.Refusal{Code: c}}
		if got := exitCode(&res); got != info.Exit {
			t.Errorf("%s: %d, want %d", c, got, info.Exit)
		}
	}
}

func TestRequestOfFlags(t *testing.T) {
	num := func(n int64) *int64 { return &n }
	b := newBench(t)
	src := b.file(t, "a.py", "print(1)\n")
	odd := b.file(t, "odd name.py", "print(2)\n")
	bin := b.file(t, "x:y.bin", "\xff\x00")
	configured := b.file(t, "tools.toml", "[workspace]\npath = \"/\"\n")
	tool := b.file(t, "tool", "#!/usr/bin/env python3\nprint(3)\n")
	tests := []struct {
		name string
		args []string
		want belljar.Request
	}{
		{"plain", []string{src}, belljar.Request{Kind: "snippet", Lang: "python", Source: "print(1)\n", Name: "a.py"}},
		{"a name that would need quoting", []string{odd}, belljar.Request{Kind: "snippet", Lang: "python", Source: "print(2)\n"}},
		{"by the #! line", []string{tool}, belljar.Request{Kind: "snippet", Lang: "python", Source: "#!/usr/bin/env python3\nprint(3)\n", Name: "tool"}},
		{"language named", []string{"-l", "py", tool}, belljar.Request{Kind: "snippet", Lang: "py", Source: "#!/usr/bin/env python3\nprint(3)\n", Name: "tool"}},
		{"script by flag", []string{"--script", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py"}},
		{"script by workspace", []string{"--workspace", ".", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py"}},
		{"script by tool", []string{"--tool", "a", "--tool", "b", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py", Tools: []string{"a", "b"}}},
		{"script by tools of a configuration", []string{"--config", configured, src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py"}},
		{"snippet all the same", []string{"--config", configured, "--snippet", src}, belljar.Request{Kind: "snippet", Lang: "python", Source: "print(1)\n", Name: "a.py"}},
		{"script by extra tool", []string{"--extra-tool", "a", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py"}},
		{"tools and extra tools, with commas", []string{"--tool", "a, b", "--extra-tool", "c,d", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py", Tools: []string{"a", "b", "c", "d"}}},
		{"no tool", []string{"--tool", "", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py", Tools: []string{}}},
		{"fence with commas", []string{"--fence", "a,b", "--fence", "c", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py", Fence: []string{"a", "b", "c"}}},
		{"fence", []string{"--fence", "a", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py", Fence: []string{"a"}}},
		{"a fence around nothing", []string{"--fence", "", src}, belljar.Request{Kind: "script", Lang: "python", Source: "print(1)\n", Name: "a.py", Fence: []string{}}},
		{"limits", []string{"--timeout", "1.5s", "--memory", "64MiB", "--processes", "3", "--disk", "1MiB", "--output", "10", src},
			belljar.Request{Kind: "snippet", Lang: "python", Source: "print(1)\n", Name: "a.py",
				Limits: belljar.LimitsRequest{TimeoutMS: num(1500), MemoryBytes: num(64 << 20), Processes: num(3), DiskBytes: num(1 << 20), OutputBytes: num(10)}}},
		{"seconds", []string{"--timeout", "2", src}, belljar.Request{Kind: "snippet", Lang: "python", Source: "print(1)\n", Name: "a.py", Limits: belljar.LimitsRequest{TimeoutMS: num(2000)}}},
		{"the rest", []string{"--arg", "-x", "--arg", "a b", "--env", "K=V=W", "--env", "E=", "--isolation", "gvisor", "--session", "s", src},
			belljar.Request{Kind: "snippet", Lang: "python", Source: "print(1)\n", Name: "a.py", Args: []string{"-x", "a b"}, Env: map[string]string{"K": "V=W", "E": ""}, Isolation: "gvisor", Session: "s"}},
		{"files", []string{"--file", tool + ":data/t", "--file", bin, src},
			belljar.Request{Kind: "snippet", Lang: "python", Source: "print(1)\n", Name: "a.py", Files: []belljar.File{
				{Name: "data/t", Content: "#!/usr/bin/env python3\nprint(3)\n"}, {Name: "x:y.bin", Content: "/wA=", Encoding: "base64"}}}},
		{"stdin from a file", []string{"--stdin", tool, src}, belljar.Request{Kind: "snippet", Lang: "python", Source: "print(1)\n", Name: "a.py", Stdin: "#!/usr/bin/env python3\nprint(3)\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if code := b.call(t, append([]string{"run", "-q"}, tt.args...)...); code != 0 {
				t.Fatalf("exit code %d: %s", code, b.stderr)
			}
			tt.want.Caller = "cli"
			if diff := cmp.Diff(&tt.want, b.engine.asked); diff != "" {
				t.Error(diff)
			}
			if !b.engine.closed {
				t.Error("the engine was not closed")
			}
		})
	}
}

func TestRunRefusals(t *testing.T) {
	b := newBench(t)
	src := b.file(t, "a.py", "print(1)\n")
	unknown := b.file(t, "a.unknown", "hello\n")
	blank := b.file(t, "blank.py", " \n")
	big := b.file(t, "big", strings.Repeat("x", maxStdin+1))
	tests := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no file", nil, 126, `run needs a FILE`},
		{"two files", []string{src, src}, 126, `arguments of the program go with --arg`},
		{"mistyped flag", []string{"--tmeout", "5s", src}, 126, "did you mean --timeout?"},
		{"no duration", []string{"--timeout", "soon", src}, 126, `--timeout: "soon" is no duration; write for example 5s`},
		{"NaN", []string{"--timeout", "NaN", src}, 126, "is no duration"},
		{"no size", []string{"--memory", "lots", src}, 126, `--memory: "lots" is no size`},
		{"no number", []string{"--processes", "1e3", src}, 126, `--processes: "1e3" is no whole number`},
		{"missing file", []string{"/no/such.py"}, 126, "Cannot read /no/such.py: no such file or directory. Name a file"},
		{"folder", []string{b.dir}, 126, "it is a folder"},
		{"no language", []string{unknown}, 126, "Cannot tell the language from the name a.unknown, and there is no #! line that says. Name it with --lang."},
		{"env without a value", []string{"--env", "K", src}, 126, "--env K has no value. Write --env NAME=VALUE."},
		{"missing input", []string{"--file", "/no/such:name", src}, 126, "Cannot read --file /no/such: no such file"},
		{"missing stdin", []string{"--stdin", "/no/such", src}, 126, "Cannot read --stdin /no/such"},
		{"stdin too large", []string{"--stdin", big, src}, 126, "stdin has more than the 1048576 bytes"},
		{"stdin twice", []string{"-l", "py", "--stdin", "-", "-"}, 126, "cannot both come from stdin"},
		{"bad configuration", []string{"--config", unknown, src}, 126, "The configuration cannot be used:"},
		{"kinds", []string{"--script", "--snippet", src}, 126, "exclude each other"},
		{"snippet with a folder", []string{"--snippet", "--workspace", ".", src}, 126, "a snippet has no tools, so --snippet and --workspace exclude each other; leave one out."},
		{"snippet with a fence", []string{"--snippet", "--fence", "", src}, 126, "--snippet and --fence exclude each other"},
		{"snippet with a tool", []string{"--snippet", "--tool", "a", src}, 126, "--snippet and --tool exclude each other"},
		{"empty folder", []string{"--workspace", "", src}, 126, "--workspace: the name is empty; name a folder."},
		{"empty file", []string{"--mcp-config=", src}, 126, "--mcp-config: the name is empty; name a file."},
		{"negative time", []string{"--timeout", "-1s", src}, 126, "--timeout is -1s. Give 1ms to 5m, for example 5s."},
		{"no process", []string{"--processes", "0", src}, 126, "--processes is 0. Give 1 to 512, for example 64."},
		{"too little memory", []string{"--script", "--memory", "256", src}, 126, "--memory is 256 bytes. Give 8MiB to 2GiB, for example 512MiB."},
		{"no output", []string{"--output", "0", src}, 126, "--output is 0 bytes. Give 1 byte to 64MiB, for example 16MiB."},
		{"empty program", []string{blank}, 126, "There is no program in " + blank + ": it is empty."},
		{"no program on stdin", []string{"-l", "python", "-"}, 126, "There is no program on stdin. Pipe one in, or name a FILE."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, extra := range [][]string{nil, {"--json"}} {
				code := b.call(t, append(append([]string{"run"}, extra...), tt.args...)...)
				if code != tt.code {
					t.Errorf("exit code %d, want %d", code, tt.code)
				}
				if extra == nil {
					has(t, "stderr", b.stderr.String(), tt.says)
					if b.stdout.Len() > 0 {
						t.Errorf("stdout %q", b.stdout)
					}
					continue
				}
				if b.stderr.Len() > 0 {
					t.Errorf("--json has its result, and stderr %q", b.stderr)
				}
				var res belljar.Result
				if err := json.Unmarshal(b.stdout.Bytes(), &res); err != nil {
					t.Fatalf("%v in %q", err, b.stdout)
				}
				has(t, "the result's error", *res.Error, tt.says)
				if res.OK || res.Status != belljar.StatusRefused || res.Refusal == nil || res.Error == nil {
					t.Errorf("result %+v", res)
				}
			}
		})
	}
	if b.engine.asked != nil {
		t.Error("something ran")
	}
}

func TestRunEndings(t *testing.T) {
	script := func(res *belljar.Result, err error) func(context.Context, *belljar.Request, func(belljar.Event)) (*belljar.Result, error) {
		return func(context.Context, *belljar.Request, func(belljar.Event)) (*belljar.Result, error) { return res, err }
	}
	refusal := belljar.Refuse(belljar.CodeIsolation, "Allow user namespaces.", "Level namespaces is not to be had here.")
	refusedRes := stopped(belljar.StatusRefused, refusal.Error())
	refusedRes.Refusal, refusedRes.Stage = refusal, belljar.StageAdmission
	faulty := stopped(belljar.StatusFailed, "the engine failed")
	faulty.Fault = "f123"
	tests := []struct {
		name string
		res  *belljar.Result
		err  error
		code int
		says string
	}{
		{"timeout", stopped(belljar.StatusTimedOut, "it did not finish; allow more time"), nil, 124, "belljar: it did not finish; allow more time (--timeout).\n"},
		{"memory", stopped(belljar.StatusOutOfMemory, "it used too much; allow more"), nil, 137, "belljar: it used too much; allow more (--memory).\n"},
		{"output", stopped(belljar.StatusOutputLimit, "it wrote too much; print less"), nil, 137, "belljar: it wrote too much; print less, or allow more (--output).\n"},
		{"harness", stopped(belljar.StatusFailed, "execute_code harness failed: no bridge (fault f1)"), nil, 125, "belljar: Belljar failed: no bridge (fault f1).\n"},
		{"refused result", refusedRes, nil, 126, "belljar: Level namespaces is not to be had here. Allow user namespaces."},
		{"refusal as an error", nil, refusal, 126, "belljar: Level namespaces is not to be had here. Allow user namespaces."},
		{"fault", faulty, nil, 125, "belljar: the engine failed (fault f123).\n"},
		{"fault as an error", nil, errors.New("no spawner"), 125, "belljar: no spawner"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			src := b.file(t, "a.py", "print(1)\n")
			b.engine.run = script(tt.res, tt.err)
			if code := b.call(t, "run", "--script", src); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			has(t, "stderr", b.stderr.String(), tt.says)
			if code := b.call(t, "run", "--script", "--json", src); code != tt.code {
				t.Errorf("with --json: exit code %d, want %d", code, tt.code)
			}
			var res belljar.Result
			if err := json.Unmarshal(b.stdout.Bytes(), &res); err != nil || res.OK {
				t.Errorf("%v in %q", err, b.stdout)
			}
		})
	}
}

func TestOpenFails(t *testing.T) {
	b := newBench(t)
	src := b.file(t, "a.py", "print(1)\n")
	b.open = func(context.Context, *settings, *slog.Logger) (Engine, error) {
		return nil, belljar.Refuse(belljar.CodeAudit, "Make it writable.", "The journal cannot be written.")
	}
	for _, args := range [][]string{{"run", src}, {"tools"}} {
		want := map[string]int{"run": 126, "tools": 1}[args[0]]
		if code := b.call(t, args...); code != want {
			t.Errorf("%v: exit code %d, want %d", args, code, want)
		}
		has(t, "stderr", b.stderr.String(), "belljar: The journal cannot be written. Make it writable.\n")
	}
}

func TestRunLine(t *testing.T) {
	ended := func(kind belljar.Kind) *belljar.Result {
		res := exited(&belljar.Request{Kind: kind}, 0)
		res.ToolCalls = belljar.ToolCalls{Count: 43, Denied: 1, BytesKeptOut: 215000}
		res.Usage.WallMS = 31.27
		return res
	}
	died := func(kind belljar.Kind) *belljar.Result {
		res, name := ended(kind), "SIGSEGV"
		res.Status, res.SignalName = belljar.StatusSignalled, &name
		return res
	}
	failed := func(kind belljar.Kind, stderr string) *belljar.Result {
		res := exited(&belljar.Request{Kind: kind}, 1)
		res.Stderr = stderr
		return res
	}
	lacking := ended(belljar.KindScript)
	lacking.Isolation.Missing = []belljar.Missing{{Protection: "landlock", Reason: "w"}, {Protection: "memory_cgroup", Reason: "x"}, {Protection: "pids_cgroup", Reason: "y"}}
	lacking.Denials = []belljar.Denial{{Explain: "mount is not allowed"}}
	unrecorded := ended(belljar.KindScript)
	unrecorded.Unrecorded = "disk full"
	tests := []struct {
		name  string
		res   *belljar.Result
		tty   bool
		quiet bool
		want  string
	}{
		{"script", ended("script"), false, false, "belljar: 43 tool calls (1 denied), 210.0 KiB kept out of the context, isolation namespaces, 31.3ms\n"},
		{"script, quiet", ended("script"), true, true, ""},
		{"snippet in a pipe", ended("snippet"), false, false, ""},
		{"snippet before a person", ended("snippet"), true, false, "belljar: isolation namespaces, 31.3ms\n"},
		{"died", died("snippet"), false, false, "belljar: the program died on SIGSEGV.\n"},
		{"died, quiet", died("snippet"), false, true, ""},
		{"a snippet that wanted tools", failed("snippet", "Traceback:\nNameError: name 'tools' is not defined. Did you mean: 'pools'?\n"), false, false, "belljar: this ran as a snippet, which has no tools; use --workspace DIR, --mcp-config FILE or --script.\n"},
		{"the same by import", failed("snippet", "ModuleNotFoundError: No module named 'belljar_tools'\n"), false, false, "belljar: this ran as a snippet, which has no tools; use --workspace DIR, --mcp-config FILE or --script.\n"},
		{"another name", failed("snippet", "NameError: name 'tool' is not defined\n"), false, false, ""},
		{"a name in passing", failed("snippet", "NameError: name 'tools' is not defined\nValueError: x\n"), false, false, ""},
		{"what is missing", lacking, false, false, "belljar: refused by the sandbox: mount is not allowed\nbelljar: 43 tool calls (1 denied), 210.0 KiB kept out of the context, isolation namespaces (without memory_cgroup, pids_cgroup), 31.3ms\n"},
		{"unrecorded is never quiet", unrecorded, false, true, "belljar: the run is not in the journal: disk full\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.errTTY = tt.tty
			b.runLine(tt.res, tt.quiet)
			if got := b.stderr.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRunTellsWhatWasDifferent(t *testing.T) {
	b := newBench(t)
	src := b.file(t, "a.py", "print(1)\n")
	b.engine.absent = []belljar.Check{{Name: "mcp server a", State: belljar.CheckFail, Meaning: "MCP server 'a' could not be started: no such file."}}
	for _, tt := range []struct {
		name string
		args []string
		want string // the beginning of stderr
	}{
		{"a server is absent", []string{"--script"}, "belljar: MCP server 'a' could not be started: no such file.\nbelljar: 0 tool calls"},
		{"a snippet needs none", nil, ""},
		{"limits are lowered", []string{"--memory", "4GiB", "--timeout", "10m", "--processes", "512"},
			"belljar: --timeout is brought down to 5m, the most that a run gets here.\nbelljar: --memory is brought down to 2GiB, the most that a run gets here.\n"},
		{"quiet", []string{"-q", "--script", "--memory", "4GiB"}, ""},
		{"as data", []string{"--json", "--script", "--memory", "4GiB"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if code := b.call(t, append(append([]string{"run"}, tt.args...), src)...); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if got := b.stderr.String(); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("stderr %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCancelledBeforeTheRunAsData(t *testing.T) {
	b := newBench(t)
	if code := b.runFailed([]string{"run", "--json"}, errCancelled{syscall.SIGTERM}); code != 130 {
		t.Errorf("exit code %d", code)
	}
	has(t, "stdout", b.stdout.String(), `"status":"cancelled"`)
}

func TestSignals(t *testing.T) {
	signals := make(chan os.Signal)
	exits := make(chan int, 1)
	b := newBench(t)
	b.signals, b.app.exit = signals, func(code int) { exits <- code }
	src := b.file(t, "a.py", "print(1)\n")
	running := make(chan struct{})
	twice := make(chan struct{})
	b.engine.run = func(ctx context.Context, req *belljar.Request, _ func(belljar.Event)) (*belljar.Result, error) {
		close(running)
		<-ctx.Done()
		if _, ok := errors.AsType[errCancelled](context.Cause(ctx)); !ok {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		<-twice // a run that does not end at once
		return stopped(belljar.StatusCancelled, "the run was cancelled"), nil
	}
	done := make(chan int)
	go func() { done <- b.call(t, "run", "--script", src) }()
	<-running
	signals <- syscall.SIGINT
	signals <- syscall.SIGINT
	if code := <-exits; code != 130 {
		t.Errorf("the second signal: exit code %d", code)
	}
	close(twice)
	if code := <-done; code != 130 {
		t.Errorf("exit code %d", code)
	}
	has(t, "stderr", b.stderr.String(), "the run was cancelled")
}

func TestSignalWhileReading(t *testing.T) {
	signals := make(chan os.Signal)
	b := newBench(t)
	b.signals = signals
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b.in = r
	done := make(chan int)
	go func() { done <- b.call(t, "run", "-l", "python", "-") }()
	signals <- syscall.SIGTERM
	select {
	case code := <-done:
		if code != 130 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("it reads on")
	}
	w.Close()
	has(t, "stderr", b.stderr.String(), "cancelled by terminated before the program ran")
}
