package engine

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
	"github.com/google/go-cmp/cmp"
)

func TestAdmissionRefuses(t *testing.T) {
	with := func(change func(*belljar.Request)) *belljar.Request {
		r := script("print(1)")
		change(r)
		return r
	}
	many := func(n int) []string { return slices.Repeat([]string{"x"}, n) }
	for _, tt := range []struct {
		name   string
		req    *belljar.Request
		code   belljar.Code
		reason string
	}{
		{"empty source", script(""), "empty_source", "execute_code called with empty code."},
		{"blank source", script(" \n\t\n"), "empty_source", "execute_code called with empty code."},
		{"empty snippet", &belljar.Request{Kind: "snippet", Lang: "python"}, "empty_source", "run_snippet called with empty code."},
		{"long source", script(strings.Repeat("x", 100_001)), "source_too_large", "the source has more than 100000 characters."},
		{"very long source", script(strings.Repeat("é", 300_000)), "source_too_large", "the source has more than 100000 characters."},
		{"source with NUL", script("print(1)\x00"), "bad_request", "the source holds a NUL."},
		{"source that is not UTF-8", script("print('\xff')"), "bad_request", "the source is not UTF-8."},
		{"kind", with(func(r *belljar.Request) { r.Kind = "job" }), "bad_request", `there is no kind of run "job".`},
		{"unknown language", with(func(r *belljar.Request) { r.Lang = "cobol" }), "unknown_language", "cannot run 'cobol': there is no such language."},
		{"snippet without a language", &belljar.Request{Kind: "snippet", Source: "1"}, "bad_request", "lang is missing."},
		{"network", with(func(r *belljar.Request) { r.Network = "host" }), "network_unavailable", `a run has no network, and "host" cannot be had.`},
		{"isolation", with(func(r *belljar.Request) { r.Isolation = "paper" }), "bad_request", `"paper" is no isolation level.`},
		{"stdin", with(func(r *belljar.Request) { r.Stdin = strings.Repeat("x", 1<<20+1) }), "bad_request", "stdin holds 1048577 bytes; 1MiB are allowed."},
		{"session", with(func(r *belljar.Request) { r.Session = "a\nb" }), "bad_request", "this is no name for a session."},
		{"long session", with(func(r *belljar.Request) { r.Session = strings.Repeat("s", 201) }), "bad_request", "this is no name for a session."},
		{"tool without a name", with(func(r *belljar.Request) { r.Tools = []string{""} }), "bad_request", `"" is no name of a tool.`},
		{"long name in the fence", with(func(r *belljar.Request) { r.Fence = []string{strings.Repeat("f", 300)} }), "bad_request", `is no name of a tool.`},
		{"too many tools", with(func(r *belljar.Request) { r.Tools = many(1001) }), "bad_request", "a list of tools has 1001 names; 1000 are allowed."},
		{"argument with NUL", with(func(r *belljar.Request) { r.Args = []string{"a\x00"} }), "bad_request", "an argument holds a NUL."},
		{"too many arguments", with(func(r *belljar.Request) { r.Args = many(1001) }), "bad_request", "the request has 1001 arguments; 1000 are allowed."},
		{"long arguments", with(func(r *belljar.Request) { r.Args = []string{strings.Repeat("x", 128<<10)} }), "bad_request", "the arguments hold more than 128KiB."},
		{"zero timeout", with(func(r *belljar.Request) { r.Limits.TimeoutMS = ptr(int64(0)) }), "bad_limit", "limits.timeout_ms is 0, and the least that makes sense is 1."},
		{"negative timeout", with(func(r *belljar.Request) { r.Limits.TimeoutMS = ptr(int64(-1)) }), "bad_limit", "limits.timeout_ms is -1"},
		{"negative memory", with(func(r *belljar.Request) { r.Limits.MemoryBytes = ptr(int64(-5 << 20)) }), "bad_limit", "limits.memory_bytes is -5242880"},
		{"little memory", with(func(r *belljar.Request) { r.Limits.MemoryBytes = ptr(int64(4096)) }), "bad_limit", "limits.memory_bytes is 4096, and the least that makes sense is 8388608."},
		{"no processes", with(func(r *belljar.Request) { r.Limits.Processes = ptr(int64(0)) }), "bad_limit", "limits.processes is 0"},
		{"little disk", with(func(r *belljar.Request) { r.Limits.DiskBytes = ptr(int64(1)) }), "bad_limit", "limits.disk_bytes is 1"},
		{"no output", with(func(r *belljar.Request) { r.Limits.OutputBytes = ptr(int64(0)) }), "bad_limit", "limits.output_bytes is 0"},
		{"files larger than the disk", with(func(r *belljar.Request) {
			r.Limits.DiskBytes = ptr(int64(64 << 10))
			r.Files = []belljar.File{{Name: "a", Content: strings.Repeat("x", 64<<10)}}
		}), "bad_limit", "the files of the request need 77824 bytes of the workspace's 65536."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			res := w.run(context.Background(), tt.req)
			if res.Status != belljar.StatusRefused || res.Stage != belljar.StageAdmission || res.Refusal.Code != tt.code || !strings.Contains(res.Refusal.Reason, tt.reason) {
				t.Errorf("%s at %s: %+v", res.Status, res.Stage, res.Refusal)
			}
			if res.Refusal != nil && res.Refusal.Hint == "" {
				t.Error("no hint")
			}
			if len(w.specs) > 0 {
				t.Error("something ran")
			}
			if len(w.journal.records()) != 1 || len(w.metrics.lines) != 1 || strings.Contains(w.metrics.lines[0], "cobol") {
				t.Errorf("records %+v, metrics %q", w.journal.records(), w.metrics.lines)
			}
		})
	}
}

func TestAdmissionAccepts(t *testing.T) {
	for name, req := range map[string]*belljar.Request{
		"one character":       script("1"),
		"as long as allowed":  script(strings.Repeat("é", 100_000)),
		"no kind":             {Source: "1"},
		"an alias":            {Source: "1", Lang: "py3"[:2]},
		"network none":        {Source: "1", Network: "none"},
		"no fence":            {Source: "1", Fence: []string{}},
		"a weaker minimum":    {Source: "1", Isolation: belljar.LevelProcess},
		"stdin of a MiB":      {Source: "1", Stdin: strings.Repeat("x", 1<<20)},
		"carriage returns":    script("print(1)\r\nprint(2)\r\n"),
		"a name of one's own": {Source: "1", Name: "digest.py"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			res := w.run(context.Background(), req)
			if !res.OK {
				t.Errorf("refused: %+v", res.Refusal)
			}
			if w.specs[0].Minimum != belljar.LevelNamespaces {
				t.Errorf("minimum %s", w.specs[0].Minimum)
			}
		})
	}
	w := newWorld(t)
	w.cfg.Minimum = belljar.LevelLandlock
	w.run(context.Background(), &belljar.Request{Source: "1", Isolation: belljar.LevelGVisor})
	w.run(context.Background(), &belljar.Request{Source: "1"})
	if w.specs[0].Minimum != belljar.LevelGVisor || w.specs[1].Minimum != belljar.LevelLandlock {
		t.Errorf("minimum %s, %s", w.specs[0].Minimum, w.specs[1].Minimum)
	}
}

func TestFileNames(t *testing.T) {
	for _, tt := range []struct {
		name   string
		source string
		files  []string
		want   string // "" is accepted
	}{
		{"plain", "main.py", []string{"a.txt", "data/b.csv", "data/c/d", "日本.txt", "-rf", "sp ace", "..hidden", "a..b", "quote'\""}, ""},
		{"parent", "main.py", []string{"../up.txt"}, `the file name "../up.txt" must not contain "..".`},
		{"absolute", "main.py", []string{"/abs.txt"}, "is absolute."},
		{"parent in the middle", "main.py", []string{"a/../../b"}, `must not contain "..".`},
		{"here", "main.py", []string{"."}, `must not contain ".".`},
		{"here in the middle", "main.py", []string{"a/./b"}, `must not contain ".".`},
		{"empty", "main.py", []string{""}, "is empty."},
		{"a folder", "main.py", []string{"dir/"}, "has an empty part."},
		{"two slashes", "main.py", []string{"a//b"}, "has an empty part."},
		{"NUL", "main.py", []string{"a\x00b"}, "holds a control character."},
		{"newline", "main.py", []string{"a\nb"}, "holds a control character."},
		{"backslash", "main.py", []string{`..\up`}, "holds a backslash."},
		{"not UTF-8", "main.py", []string{"a\xff"}, "is not UTF-8."},
		{"long part", "main.py", []string{strings.Repeat("a", 256)}, "has a part that is too long."},
		{"long name", "main.py", []string{strings.Repeat("a/", 600) + "b"}, "is too long."},
		{"deep", "main.py", []string{strings.Repeat("a/", 40) + "b"}, "lies too deep."},
		{"the source's name", "main.py", []string{"main.py"}, "is that of the source."},
		{"beneath the source", "main.py", []string{"main.py/x"}, "has another file as its folder."},
		{"twice", "main.py", []string{"a", "a"}, "is there twice."},
		{"file then folder", "main.py", []string{"a", "a/b"}, "has another file as its folder."},
		{"folder then file", "main.py", []string{"a/b/c", "a/b"}, "is also a folder of another file."},
		{"source in a folder", "a/main.py", nil, "cannot be the source's name."},
		{"source like an option", "-c", nil, "cannot be the source's name."},
		{"source elsewhere", "../main.py", nil, `must not contain "..".`},
		{"source of dots", "..", nil, `must not contain "..".`},
		{"source with NUL", "a\x00.py", nil, "holds a control character."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var files []belljar.File
			for _, name := range tt.files {
				files = append(files, belljar.File{Name: name, Content: "x"})
			}
			got, refusal := checkFiles(files, tt.source, "print(1)")
			if tt.want == "" {
				if refusal != nil || len(got) != len(files)+1 {
					t.Errorf("%d files, %v", len(got), refusal)
				}
				return
			}
			if refusal == nil || refusal.Code != belljar.CodeBadFileName || !strings.Contains(refusal.Reason, tt.want) {
				t.Errorf("refusal %+v", refusal)
			}
		})
	}
}

func TestFileContents(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []belljar.File
		want  string
	}{
		{"base64", []belljar.File{{Name: "a", Content: "!", Encoding: "base64"}}, `the content of the file "a" is no base64.`},
		{"base64 with a rest", []belljar.File{{Name: "a", Content: "AAF=", Encoding: "base64"}}, `the content of the file "a" is no base64.`},
		{"encoding", []belljar.File{{Name: "a", Content: "", Encoding: "hex"}}, `the file "a" has the unknown encoding "hex".`},
		{"too much", []belljar.File{{Name: "a", Content: strings.Repeat("x", 20<<20)}, {Name: "b", Content: strings.Repeat("x", 20<<20)}}, "the files of the request hold more than 32MiB together."},
		{"too many", make([]belljar.File, 1001), "the request has 1001 files; 1000 are allowed."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, refusal := checkFiles(tt.files, "main.py", "1")
			if refusal == nil || refusal.Code != belljar.CodeBadRequest || refusal.Reason != tt.want {
				t.Errorf("refusal %+v", refusal)
			}
		})
	}
}

// Whatever is accepted stays beneath the workspace and clashes with nothing.
func FuzzFileNames(f *testing.F) {
	f.Add("main.py", "a/b", "a")
	f.Add("main.py", "../x", "/etc/passwd")
	f.Add("-c", "a\\b", "a/./b")
	f.Fuzz(func(t *testing.T, source, a, b string) {
		got, refusal := checkFiles([]belljar.File{{Name: a}, {Name: b}}, source, "1")
		if refusal != nil {
			return
		}
		for i, x := range got {
			if path.Clean("/w/"+x.Name) != "/w/"+x.Name || !strings.HasPrefix("/w/"+x.Name, "/w/") || strings.ContainsAny(x.Name, "\x00\\") {
				t.Fatalf("accepted %q", x.Name)
			}
			for j, y := range got {
				if i != j && (x.Name == y.Name || strings.HasPrefix(y.Name, x.Name+"/")) {
					t.Fatalf("accepted %q beside %q", x.Name, y.Name)
				}
			}
		}
	})
}

func TestEnv(t *testing.T) {
	good := map[string]string{"MODE": "fast", "LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin", "TERM": "xterm", "GOAL": "x", "path": "x", "_": "", "PYTHO": "", "ENVIRONMENT": "test", "a1": "é\n"}
	if refusal := checkEnv(good); refusal != nil {
		t.Errorf("refused: %+v", refusal)
	}
	for _, name := range []string{"PATH", "HOME", "PWD", "USER", "TMPDIR", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHON_GIL", "NODE_OPTIONS",
		"NODE_PATH", "BASH_ENV", "ENV", "BASH_FUNC_x%%", "PERL5OPT", "RUBYOPT", "ERL_FLAGS", "JAVA_TOOL_OPTIONS", "GLIBC_TUNABLES", "SHELLOPTS", "IFS", "GCC_EXEC_PREFIX",
		"BELLJAR", "BELLJAR_X", "", "A=B", "A B", "1A", "Ä", "A\x00"} {
		refusal := checkEnv(map[string]string{name: "x"})
		if refusal == nil || refusal.Code != belljar.CodeBadEnv {
			t.Errorf("%q: %+v", name, refusal)
		}
	}
	large, many := map[string]string{"A": strings.Repeat("x", 129<<10)}, map[string]string{}
	for i := range 257 {
		many[fmt.Sprintf("V%d", i)] = ""
	}
	for _, env := range []map[string]string{{"A": "\x00"}, large, many} {
		if refusal := checkEnv(env); refusal == nil || refusal.Code != belljar.CodeBadEnv {
			t.Errorf("%d variables: %+v", len(env), refusal)
		}
	}
}

// A request may choose its time zone, but not what the language needs.
func TestEnvironWins(t *testing.T) {
	w := newWorld(t)
	req := script("1")
	req.Env = map[string]string{"TZ": "Europe/Berlin", "EXTRA": "1"}
	w.run(context.Background(), req)
	env := map[string]string{}
	for _, kv := range w.specs[0].Env {
		name, value, _ := strings.Cut(kv, "=")
		if _, twice := env[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		env[name] = value
	}
	if env["TZ"] != "Europe/Berlin" || env["EXTRA"] != "1" || env["PYTHONUNBUFFERED"] != "1" {
		t.Errorf("env %v", env)
	}
	t.Setenv("CANARY", "x")
	w.run(context.Background(), script("1"))
	if strings.Contains(strings.Join(w.specs[1].Env, "\n"), "CANARY") {
		t.Error("the host's environment shows")
	}
}

func TestLimits(t *testing.T) {
	ask := func(ms, memory, processes, disk, output int64) belljar.LimitsRequest {
		var l belljar.LimitsRequest
		for _, v := range []struct {
			to **int64
			n  int64
		}{{&l.TimeoutMS, ms}, {&l.MemoryBytes, memory}, {&l.Processes, processes}, {&l.DiskBytes, disk}, {&l.OutputBytes, output}} {
			if v.n != 0 {
				*v.to = &v.n
			}
		}
		return l
	}
	limits := func(ms, memory, processes, disk, output int64) belljar.Limits {
		return belljar.Limits{TimeoutMS: ms, MemoryBytes: memory, Processes: processes, DiskBytes: disk, OutputBytes: output, Inodes: 10000, OpenFiles: 1024}
	}
	const mib = 1 << 20
	script, snippet := belljar.KindScript, belljar.KindSnippet
	for _, tt := range []struct {
		name string
		cfg  LimitsConfig
		kind belljar.Kind
		lang *language.Language
		ask  belljar.LimitsRequest
		want belljar.Limits
	}{
		{"script", LimitsConfig{}, script, nil, belljar.LimitsRequest{}, limits(30000, 512*mib, 64, 64*mib, 16*mib)},
		{"snippet", LimitsConfig{}, snippet, nil, belljar.LimitsRequest{}, limits(5000, 512*mib, 64, 64*mib, 16*mib)},
		{"less", LimitsConfig{}, script, nil, ask(100, 64*mib, 3, mib, 1000), limits(100, 64*mib, 3, mib, 1000)},
		{"more", LimitsConfig{}, script, nil, ask(60000, 1024*mib, 100, 128*mib, 32*mib), limits(60000, 1024*mib, 100, 128*mib, 32*mib)},
		{"nonsense above", LimitsConfig{}, script, nil, ask(1e18, 1e18, 1e18, 1e18, 1e18), limits(300000, 2048*mib, 512, 1024*mib, 64*mib)},
		{"configured is default and most", LimitsConfig{Script: Limits{Timeout: 10 * time.Second}}, script, nil, ask(60000, 0, 0, 0, 0), limits(10000, 512*mib, 64, 64*mib, 16*mib)},
		{"configured above the built-in ceiling", LimitsConfig{Script: Limits{Timeout: time.Hour}}, script, nil, ask(7200000, 0, 0, 0, 0), limits(3600000, 512*mib, 64, 64*mib, 16*mib)},
		{"configured for the other kind", LimitsConfig{Script: Limits{Timeout: 10 * time.Second}}, snippet, nil, ask(60000, 0, 0, 0, 0), limits(60000, 512*mib, 64, 64*mib, 16*mib)},
		{"default and ceiling apart", LimitsConfig{Script: Limits{Timeout: 10 * time.Second}, Ceiling: Limits{Timeout: 20 * time.Second}}, script, nil, ask(60000, 0, 0, 0, 0), limits(20000, 512*mib, 64, 64*mib, 16*mib)},
		{"ceiling below the default", LimitsConfig{Ceiling: Limits{Timeout: time.Second, Memory: 64 * mib}}, script, nil, belljar.LimitsRequest{}, limits(1000, 64*mib, 64, 64*mib, 16*mib)},
		{"language", LimitsConfig{Language: map[string]Limits{"moon": {Memory: 100 * mib}}}, script, &language.Language{Name: "moon"}, belljar.LimitsRequest{}, limits(30000, 100*mib, 64, 64*mib, 16*mib)},
		{"another language", LimitsConfig{Language: map[string]Limits{"moon": {Memory: 100 * mib}}}, script, &language.Language{Name: "sun"}, belljar.LimitsRequest{}, limits(30000, 512*mib, 64, 64*mib, 16*mib)},
		{"what the runtime needs", LimitsConfig{}, script, &language.Language{Limits: language.Limits{RuntimeProcesses: 20, Memory: 4096 * mib}}, belljar.LimitsRequest{}, limits(30000, 4096*mib, 84, 64*mib, 16*mib)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, refusal := tt.cfg.apply(&belljar.Request{Kind: tt.kind, Limits: tt.ask}, tt.lang)
			if refusal != nil {
				t.Fatal(refusal)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimitsProblems(t *testing.T) {
	cfg := LimitsConfig{
		Script:   Limits{Timeout: -time.Second, Memory: 100},
		Snippet:  Limits{Disk: 1, Processes: -1},
		Language: map[string]Limits{"moon": {Timeout: time.Microsecond}},
		Ceiling:  Limits{Timeout: 1 << 62},
		Runs:     100, Queue: -1,
	}
	want := []string{
		"limits.ceiling.timeout: 1281023h53m38.427387904s is not between 1ms and a year",
		`limits.language.moon.timeout: 1µs is not between 1ms and a year; write it with its unit, as in "5s"`,
		"limits.language.moon: there is no such language",
		"limits.queue: is negative",
		"limits.runs: 100 is not between 1 and 60",
		"limits.script.memory: no program starts in less than 8MiB",
		"limits.script.timeout: is negative",
		"limits.snippet.disk: must be at least 64KiB",
		"limits.snippet.processes: is negative",
	}
	if diff := cmp.Diff(want, cfg.Problems([]string{"python"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (LimitsConfig{}).Problems(nil); got != nil {
		t.Errorf("the defaults have problems: %v", got)
	}
}

// Each variable that a request may not set is refused by one rule.
func TestSteeringHasNoDoubles(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range slices.Concat(ours, steering) {
		if seen[name] {
			t.Errorf("%s is listed twice", name)
		}
		seen[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if name != strings.ToUpper(name) {
			t.Errorf("%s is not upper case", name)
		}
	}
}
