package cli

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belljar/belljar"
)

func TestUsage(t *testing.T) {
	b := newBench(t)
	tests := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"mistyped command", []string{"rnu"}, 2, `there is no command "rnu"; did you mean run?`},
		{"unknown command", []string{"xyzzy"}, 2, `there is no command "xyzzy"; "belljar --help" lists the commands.`},
		{"mistyped subcommand", []string{"audit", "lits"}, 2, `there is no command "lits"; did you mean list?`},
		{"mistyped flag", []string{"doctor", "--jsn"}, 2, "belljar doctor has no flag --jsn; did you mean --json?"},
		{"flag in front", []string{"--jsn"}, 2, "belljar has no flag --jsn"},
		{"operand", []string{"doctor", "x"}, 2, `belljar doctor takes no operand, but was given "x".`},
		{"value", []string{"audit", "list", "--limit", "x"}, 2, "--limit: "},
		{"negative limit", []string{"audit", "list", "-n", "-1"}, 2, "--limit: -1 is no number of records; give 1 or more."},
		{"outcome", []string{"audit", "list", "--outcome", "nope"}, 2, `--outcome: there is no outcome "nope"; there are exited, signalled,`},
		{"empty path", []string{"tools", "--workspace", ""}, 2, "--workspace: the name is empty; name a folder."},
		{"since", []string{"audit", "list", "--since", "soon"}, 2, `--since "soon" is neither an age`},
		{"no value", []string{"doctor", "--config"}, 2, "flag needs an argument: --config"},
		{"a name that drives a terminal", []string{"\x1b[2J"}, 2, `there is no command "\x1b[2J"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if code := b.call(t, tt.args...); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if text := b.stderr.String(); strings.Count(text, "\n") != 1 || b.stdout.Len() > 0 {
				t.Errorf("not one sentence: %q, stdout %q", text, b.stdout)
			}
			has(t, "stderr", b.stderr.String(), "belljar: "+tt.says)
		})
	}
}

func TestHelp(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"run", "--help"}, {"audit"}, {"completion", "bash"}} {
		if code := b.call(t, args...); code != 0 || b.stdout.Len() == 0 || b.stderr.Len() > 0 {
			t.Errorf("%v: exit code %d, stdout %d bytes, stderr %q", args, code, b.stdout.Len(), b.stderr)
		}
	}
}

func TestVersionCommand(t *testing.T) {
	b := newBench(t)
	b.open = nil // it must not be called
	b.call(t, "version")
	has(t, "stdout", b.stdout.String(), "belljar devel", ", go1.")
	plain := b.stdout.String()
	for _, flag := range []string{"--version", "-v"} {
		if code := b.call(t, flag); code != 0 || b.stdout.String() != plain {
			t.Errorf("%s: exit code %d, %q", flag, code, b.stdout)
		}
	}
	b.call(t, "version", "--json")
	var v versionInfo
	if err := json.Unmarshal(b.stdout.Bytes(), &v); err != nil || v.Version == "" || v.Platform == "" {
		t.Errorf("%v in %q", err, b.stdout)
	}
}

func TestDoctor(t *testing.T) {
	good := belljar.Check{Name: "sandbox", State: belljar.CheckOK, Meaning: "Level namespaces.", Remedy: "unused"}
	warn := belljar.Check{Name: "memory", State: belljar.CheckWarn, Meaning: "No group.\nSecond line.", Remedy: "Delegate one."}
	bad := belljar.Check{Name: "python", State: belljar.CheckFail, Meaning: "None \x1b[2J found.", Remedy: "apt-get install python3"}
	tests := []struct {
		name   string
		checks []belljar.Check
		code   int
		want   string
	}{
		{"well", []belljar.Check{good}, 0, "ok   configuration  No configuration file; the defaults apply.\nok   sandbox        Level namespaces.\n"},
		{"warnings are no failure", []belljar.Check{warn}, 0, "warn memory         No group.\n                    Second line.\n                    -> Delegate one.\n"},
		{"failure", []belljar.Check{good, bad}, 1, "fail python         None ␛[2J found.\n                    -> apt-get install python3\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.engine.checks = tt.checks
			if code := b.call(t, "doctor"); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			has(t, "stdout", b.stdout.String(), tt.want)
			if code := b.call(t, "doctor", "--json"); code != tt.code {
				t.Errorf("--json: exit code %d", code)
			}
			var rep doctorReport
			if err := json.Unmarshal(b.stdout.Bytes(), &rep); err != nil || rep.OK != (tt.code == 0) || len(rep.Checks) != len(tt.checks)+1 {
				t.Errorf("%v, %+v", err, rep)
			}
		})
	}
}

func TestDoctorTellsWhatKeepsItFromStarting(t *testing.T) {
	b := newBench(t)
	bad := b.file(t, "bad.toml", "[nothing]\n")
	if code := b.call(t, "doctor", "--config", bad); code != 1 {
		t.Errorf("exit code %d", code)
	}
	has(t, "stdout", b.stdout.String(), "fail configuration", "bad.toml:1: unknown key nothing", "-> Correct it")
}

func TestColours(t *testing.T) {
	b := newBench(t)
	b.outTTY = true
	if got := b.mark(belljar.CheckFail); got != "\x1b[31mfail\x1b[0m" {
		t.Errorf("on a terminal %q", got)
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		b.env = []string{env}
		if got := b.mark(belljar.CheckFail); got != "fail" {
			t.Errorf("with %s %q", env, got)
		}
	}
}

func TestTools(t *testing.T) {
	b := newBench(t)
	b.engine.tools = []Tool{
		{Tool: belljar.Tool{Name: "a", Description: "Does a.\nMore.", InputSchema: json.RawMessage(`{"type":"object"}`)}, Signature: "a(x: int) -> str"},
		{Tool: belljar.Tool{Name: "b", InputSchema: json.RawMessage(`{`)}, Signature: "b()", Why: "tool 'b' not available", Hint: "add it", Code: "not_bridged"},
		{Tool: belljar.Tool{Name: "c", InputSchema: json.RawMessage(`{}`)}, Signature: "c()", Why: "tool 'c' not available", Code: "not_bridged"},
		{Tool: belljar.Tool{Name: "d", InputSchema: json.RawMessage(`{}`)}, Signature: "d()", Why: "disabled", Code: "disabled"},
	}
	if code := b.call(t, "tools"); code != 0 || b.stdout.String() != "a(x: int) -> str\n    Does a.\n" {
		t.Errorf("exit code %d, stdout %q", code, b.stdout)
	}
	const everything = "a(x: int) -> str\n    Does a.\nb()\n    not offered: outside the default set\nc()\n    not offered: outside the default set\nd()\n    not offered: disabled by policy.deny\n"
	if b.call(t, "tools", "--all"); b.stdout.String() != everything {
		t.Errorf("stdout %q", b.stdout)
	}
	if got, want := b.stderr.String(), "belljar: --extra-tool NAME lets scripts call one more, and so does extra_tools under [policy] in the configuration.\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	b.call(t, "tools", "--all", "--tool", "a")
	has(t, "stdout", b.stdout.String(), "not offered: outside the tools of --tool\n")
	b.engine.broken = []error{errors.New("server x: no answer")}
	if code := b.call(t, "tools", "--all", "--json"); code != 1 {
		t.Errorf("exit code %d", code)
	}
	var list toolList
	if err := json.Unmarshal(b.stdout.Bytes(), &list); err != nil || len(list.Tools) != 4 || len(list.Problems) != 1 || list.Tools[1].Offered || list.Tools[1].Code != "not_bridged" {
		t.Errorf("%v, %+v", err, list)
	}
	b.engine.tools, b.engine.broken = nil, nil
	b.call(t, "tools")
	has(t, "stderr", b.stderr.String(), "there are no tools: --workspace DIR")
}

func TestMCPConfig(t *testing.T) {
	b := newBench(t)
	mcp := b.file(t, "mcp.json", "{}")
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			if code := b.call(t, "mcp", "config", "--client", c.name, "--workspace", ".", "--mcp-config", "mcp.json"); code != 0 {
				t.Fatalf("exit code %d: %s", code, b.stderr)
			}
			var doc map[string]map[string]clientEntry
			if err := json.Unmarshal(b.stdout.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			e, ok := doc[c.key]["belljar"]
			if !ok || len(doc) != 1 || !filepath.IsAbs(e.Command) || (e.Type == "stdio") != (c.name == "vscode") {
				t.Errorf("%s", b.stdout)
			}
			if got := strings.Join(e.Args, " "); got != "mcp --workspace "+b.dir+" --mcp-config "+mcp {
				t.Errorf("args %q", got)
			}
			has(t, "stderr", b.stderr.String(), c.files)
			b.call(t, "mcp", "config", "--client", c.name, "--extra-tool", "a,b", "--extra-tool", "c", "--tool", "d")
			doc = nil
			if err := json.Unmarshal(b.stdout.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(doc[c.key]["belljar"].Args, " "); got != "mcp --extra-tool a,b,c --tool d" {
				t.Errorf("args %q", got)
			}
			b.call(t, "mcp", "config", "--client", c.name, "--json")
			var s clientSnippet
			if err := json.Unmarshal(b.stdout.Bytes(), &s); err != nil || s.Client != c.name || s.Config[c.key] == nil {
				t.Errorf("%v in %s", err, b.stdout)
			}
		})
	}
	for _, tt := range []struct{ name, says string }{
		{"claude", "did you mean claude-code or claude-desktop?"},
		{"emacs", "there are claude-code, claude-desktop, cursor, vscode, windsurf, copilot;"},
		{"", "mcp config needs --client NAME, one of claude-code"},
	} {
		if code := b.call(t, "mcp", "config", "--client", tt.name); code != 2 {
			t.Errorf("%q: exit code %d", tt.name, code)
		}
		has(t, "stderr", b.stderr.String(), tt.says)
	}
	b.call(t, "mcp", "config", "--client", "cursor", "--workspace", "nowhere")
	has(t, "stderr", b.stderr.String(), "--workspace "+filepath.Join(b.dir, "nowhere")+": no such file or directory; the client will meet the same.")
}

func TestCompletion(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--isolation", ""}, "namespaces\n:4\n"},
		{[]string{"run", "--lang", "p"}, "python\n:4\n"},
		{[]string{"mcp", "config", "--client", "c"}, "claude-code\nclaude-desktop\ncursor\nvscode\nwindsurf\ncopilot\n:4\n"},
		{[]string{"audit", "list", "--outcome", "den"}, strings.Join(outcomes, "\n") + "\n:4\n"},
	} {
		b.call(t, append([]string{"__complete"}, tt.args...)...)
		if got := b.stdout.String(); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestRecords(t *testing.T) {
	b := newBench(t)
	at := time.Date(2026, 5, 10, 12, 0, 0, 0, time.Local)
	err := b.printRecords([]belljar.Record{
		{Time: at, Run: "run_1", Event: "call", Name: "ptc:read_file", Args: `{"path":"a.txt","max":3}`, Outcome: "ok", Session: "ptc", Caller: "cli"},
		{Time: at, Run: "run_1", Event: "run", Name: "execute_code", Args: `{"limits":{}}`, Outcome: "exited", Session: "s", Caller: "cli"},
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.stdout.String(), "\n")
	if len(lines) != 4 {
		t.Fatalf("%q", lines)
	}
	has(t, "a call", lines[1], at.Format(time.RFC3339), `max=3, path="a.txt"`, "  -  ")
	if strings.Contains(lines[2], "limits") {
		t.Errorf("a run shows %q", lines[2])
	}
	has(t, "stderr", b.stderr.String(), "belljar: these are the newest 2; -n N shows more")
}

func TestListReasons(t *testing.T) {
	b := newBench(t)
	bad := b.file(t, "bad.toml", "[a]\n[b]\n")
	b.call(t, "tools", "--config", bad)
	want := "belljar: The configuration cannot be used:\n  " + bad + ":1: unknown key a.\n  " + bad + ":2: unknown key b.\nCorrect it and call again.\n"
	if got := b.stderr.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	b := newBench(t)
	err := b.printTable([][]string{{"A", "B", "C"}, {"x", "two\nlines", "\x1b[2J"}, {"longer", "é", ""}})
	if err != nil {
		t.Fatal(err)
	}
	want := "A       B          C\nx       two␊lines  ␛[2J\nlonger  é          \n"
	if got := b.stdout.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMoment(t *testing.T) {
	now := time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		in   string
		want time.Time
	}{
		{"15m", now.Add(-15 * time.Minute)},
		{"7d", now.AddDate(0, 0, -7)},
		{"2026-05-01T10:00:00Z", time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)},
		{"2026-05-01", time.Date(2026, 5, 1, 0, 0, 0, 0, time.Local)},
		{"-5m", time.Time{}},
		{"xd", time.Time{}},
		{"1dd", time.Time{}},
	}
	for _, tt := range tests {
		got, err := moment(tt.in, now)
		if (err != nil) != tt.want.IsZero() || err == nil && !got.Equal(tt.want) {
			t.Errorf("moment(%q) = %v, %v", tt.in, got, err)
		}
	}
}
