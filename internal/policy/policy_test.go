package policy

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belljar/belljar"
)

func mustNew(t testing.TB, cfg Config) *Policy {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

// ask is a question about a known tool from a script.
func ask(tool string, forms ...string) Question {
	return Question{Via: ViaScript, Tool: tool, Forms: forms, Known: true}
}

func with(q Question, change func(*Question)) Question {
	change(&q)
	return q
}

func TestDecide(t *testing.T) {
	na := func(x string) string { return "tool '" + x + "' not available" }
	const deniedX = "Blocked by policy: Tool 'x' is disabled by policy."
	direct := func(q *Question) { q.Via = ViaDirect }
	cases := []struct {
		name   string
		cfg    Config
		q      Question
		code   string // empty: allowed
		reason string
		hint   string
	}{
		{name: "curated tool", q: ask("read_file")},
		{name: "every curated tool has its name", q: ask("current_time")},
		{name: "known tool outside the curated set", q: ask("write_file"), code: CodeNotBridged, reason: na("write_file"), hint: hintExtra},
		{name: "unknown tool", q: Question{Via: ViaScript, Tool: "x"}, code: CodeUnknownTool, reason: na("x"), hint: hintUnknown},
		{name: "unknown tool with a curated name", q: Question{Via: ViaScript, Tool: "read_file"}, code: CodeUnknownTool, reason: na("read_file"), hint: hintUnknown},
		{name: "unknown tool asked directly", q: Question{Via: ViaDirect, Tool: "x"}, code: CodeUnknownTool, reason: na("x"), hint: hintUnknown},
		{name: "no via is judged as a script", q: with(ask("write_file"), func(q *Question) { q.Via = "" }), code: CodeNotBridged, reason: na("write_file"), hint: hintExtra},
		{name: "odd via is judged as a script", q: with(ask("write_file"), func(q *Question) { q.Via = "DIRECT" }), code: CodeNotBridged, reason: na("write_file"), hint: hintExtra},
		{name: "upper case is another name", q: ask("Read_File"), code: CodeNotBridged, reason: na("Read_File"), hint: hintExtra},
		{name: "empty name", q: Question{Via: ViaScript, Known: true}, code: CodeNotBridged, reason: na(""), hint: hintExtra},

		{name: "tools replaces the curated set", cfg: Config{Tools: []string{"x"}}, q: ask("read_file"), code: CodeNotBridged, reason: na("read_file"), hint: hintExtra},
		{name: "tools allows", cfg: Config{Tools: []string{"x"}}, q: ask("x")},
		{name: "extra adds to the curated set", cfg: Config{ExtraTools: []string{"x"}}, q: ask("x")},
		{name: "extra keeps the curated set", cfg: Config{ExtraTools: []string{"x"}}, q: ask("read_file")},
		{name: "extra adds to tools", cfg: Config{Tools: []string{"y"}, ExtraTools: []string{"x"}}, q: ask("x")},
		{name: "extra matches the source's prefixed form", cfg: Config{ExtraTools: []string{"fs.write_file"}}, q: ask("write_file", "fs_write_file")},
		{name: "empty tools is the curated set", cfg: Config{Tools: []string{}}, q: ask("read_file")},

		{name: "selection replaces the curated set", q: with(ask("x"), func(q *Question) { q.Selection = []string{"x"} })},
		{name: "selection leaves curated tools out", q: with(ask("read_file"), func(q *Question) { q.Selection = []string{"x"} }), code: CodeNotBridged, reason: na("read_file"), hint: hintSelection},
		{name: "empty selection is no tool", q: with(ask("read_file"), func(q *Question) { q.Selection = []string{} }), code: CodeNotBridged, reason: na("read_file"), hint: hintSelection},
		{name: "extra is not added to a selection", cfg: Config{ExtraTools: []string{"x"}}, q: with(ask("x"), func(q *Question) { q.Selection = []string{"read_file"} }), code: CodeNotBridged, reason: na("x"), hint: hintSelection},
		{name: "selection cannot pass a configured ceiling", cfg: Config{Tools: []string{"y"}}, q: with(ask("x"), func(q *Question) { q.Selection = []string{"x"} }), code: CodeNotBridged, reason: na("x"), hint: hintCeiling},
		{name: "selection within a configured ceiling", cfg: Config{Tools: []string{"x", "y"}}, q: with(ask("x"), func(q *Question) { q.Selection = []string{"x"} })},
		{name: "selection of an extra tool under a ceiling", cfg: Config{Tools: []string{"y"}, ExtraTools: []string{"x"}}, q: with(ask("x"), func(q *Question) { q.Selection = []string{"x"} })},
		{name: "selection of an unknown tool", q: Question{Via: ViaScript, Tool: "x", Selection: []string{"x"}}, code: CodeUnknownTool, reason: na("x"), hint: hintUnknown},
		{name: "selection knows no patterns", q: with(ask("x"), func(q *Question) { q.Selection = []string{"*"} }), code: CodeNotBridged, reason: na("x"), hint: hintSelection},
		{name: "direct call does not meet the selection", q: with(with(ask("x"), direct), func(q *Question) { q.Selection = []string{"y"} })},
		{name: "direct call does not meet the bridged set", q: with(ask("write_file"), direct)},

		{name: "never bridged", q: ask("execute_code"), code: CodeNeverBridged, reason: na("execute_code"), hint: hintNever},
		{name: "never bridged when configured", cfg: Config{Tools: []string{"task"}, ExtraTools: []string{"task"}}, q: ask("task"), code: CodeNeverBridged, reason: na("task"), hint: hintNever},
		{name: "never bridged when selected", q: with(ask("ask_human"), func(q *Question) { q.Selection = []string{"ask_human"} }), code: CodeNeverBridged, reason: na("ask_human"), hint: hintNever},
		{name: "never bridged under another form", cfg: Config{ExtraTools: []string{"x"}}, q: ask("x", "run_snippet"), code: CodeNeverBridged, reason: na("x"), hint: hintNever},
		{name: "never bridged with other signs", cfg: Config{ExtraTools: []string{"task-batch"}}, q: ask("task-batch"), code: CodeNeverBridged, reason: na("task-batch"), hint: hintNever},
		{name: "never bridged and unknown", q: Question{Via: ViaScript, Tool: "request_user_input"}, code: CodeNeverBridged, reason: na("request_user_input"), hint: hintNever},
		{name: "never bridged may be called directly", q: with(ask("ask_human"), direct)},

		{name: "fence allows", q: with(ask("read_file"), func(q *Question) { q.Fence = []string{"read_file"} })},
		{name: "fence blocks", q: with(ask("read_file"), func(q *Question) { q.Fence = []string{"b", "a"} }), code: CodeFence,
			reason: "Blocked by policy: tool 'read_file' is outside this turn's tool allowlist (a, b) — work within the allowed tools.", hint: hintFence},
		{name: "empty fence blocks everything", q: with(ask("read_file"), func(q *Question) { q.Fence = []string{} }), code: CodeFence,
			reason: "Blocked by policy: tool 'read_file' is outside this turn's tool allowlist (none) — work within the allowed tools.", hint: hintFence},
		{name: "fence blocks a direct call", q: with(with(ask("x"), direct), func(q *Question) { q.Fence = []string{"y"} }), code: CodeFence,
			reason: "Blocked by policy: tool 'x' is outside this turn's tool allowlist (y) — work within the allowed tools.", hint: hintFence},
		{name: "fence entry in another form", q: with(ask("read_file", "fs_read_file"), func(q *Question) { q.Fence = []string{"fs.read-file"} })},
		{name: "fence never widens", q: with(ask("write_file"), func(q *Question) { q.Fence = []string{"write_file"} }), code: CodeNotBridged, reason: na("write_file"), hint: hintExtra},
		{name: "fence knows no patterns", q: with(ask("read_file"), func(q *Question) { q.Fence = []string{"read_*"} }), code: CodeFence,
			reason: "Blocked by policy: tool 'read_file' is outside this turn's tool allowlist (read_*) — work within the allowed tools.", hint: hintFence},

		{name: "deny list", cfg: Config{ExtraTools: []string{"x"}, Deny: []string{"x"}}, q: ask("x"), code: CodeDisabled, reason: deniedX, hint: hintDisabled},
		{name: "deny list and a direct call", cfg: Config{Deny: []string{"x"}}, q: with(ask("x"), direct), code: CodeDisabled, reason: deniedX, hint: hintDisabled},
		{name: "deny wins over a selection", cfg: Config{Deny: []string{"x"}}, q: with(ask("x"), func(q *Question) { q.Selection = []string{"x"} }), code: CodeDisabled, reason: deniedX, hint: hintDisabled},
		{name: "deny by the original form", cfg: Config{ExtraTools: []string{"x"}, Deny: []string{"drop-table"}}, q: ask("x", "drop table"), code: CodeDisabled, reason: deniedX, hint: hintDisabled},
		{name: "deny by the prefixed form", cfg: Config{ExtraTools: []string{"x"}, Deny: []string{"db_x"}}, q: ask("x", "db.x"), code: CodeDisabled, reason: deniedX, hint: hintDisabled},
		{name: "deny by a pattern", cfg: Config{ExtraTools: []string{"x"}, Deny: []string{"drop-*"}}, q: ask("x", "drop_table"), code: CodeDisabled, reason: deniedX, hint: hintDisabled},
		{name: "deny everything", cfg: Config{Deny: []string{"*"}}, q: with(ask("x"), direct), code: CodeDisabled, reason: deniedX, hint: hintDisabled},
		{name: "deny looks past case", cfg: Config{Deny: []string{"X"}}, q: with(ask("x"), direct), code: CodeDisabled, reason: deniedX, hint: hintDisabled},
		{name: "never bridged in any case", cfg: Config{ExtraTools: []string{"Execute-Code", "TASK"}}, q: ask("Execute-Code"), code: CodeNeverBridged, reason: "tool 'Execute-Code' not available", hint: hintNever},

		{name: "last call of the budget", cfg: Config{MaxCallsPerRun: 3}, q: with(ask("read_file"), func(q *Question) { q.Calls = 2 })},
		{name: "first call over the budget", cfg: Config{MaxCallsPerRun: 3}, q: with(ask("read_file"), func(q *Question) { q.Calls = 3 }), code: CodeBudget, reason: "Blocked by policy: this run has used its 3 tool calls.", hint: hintBudget},
		{name: "default budget", q: with(ask("read_file"), func(q *Question) { q.Calls = 999 })},
		{name: "over the default budget", q: with(ask("read_file"), func(q *Question) { q.Calls = 1000 }), code: CodeBudget, reason: "Blocked by policy: this run has used its 1000 tool calls.", hint: hintBudget},

		{name: "a script may start", q: Question{Run: belljar.KindScript}},
		{name: "a snippet may start", q: Question{Run: belljar.KindSnippet}},
		{name: "the fence does not restrict a run", q: Question{Run: belljar.KindScript, Fence: []string{}}},
		{name: "scripts disabled", cfg: Config{Deny: []string{"execute_code"}}, q: Question{Run: belljar.KindScript}, code: CodeDisabled, reason: "Blocked by policy: Tool 'execute_code' is disabled by policy.", hint: hintDisabled},
		{name: "scripts disabled, snippets not", cfg: Config{Deny: []string{"execute_code"}}, q: Question{Run: belljar.KindSnippet}},
		{name: "snippets disabled", cfg: Config{Deny: []string{"run-snippet"}}, q: Question{Run: belljar.KindSnippet}, code: CodeDisabled, reason: "Blocked by policy: Tool 'run_snippet' is disabled by policy.", hint: hintDisabled},
		{name: "no such kind of run", q: Question{Run: "job"}, code: CodeUnknownTool, reason: na("job"), hint: hintRun},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := Decision{Answer: Allow}
			if c.code != "" {
				want = Decision{Answer: Deny, Code: c.code, Reason: c.reason, Hint: c.hint}
			}
			if diff := cmp.Diff(want, mustNew(t, c.cfg).Decide(c.q)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each step must come before all that follow it: a question that offends several
// gets the answer of the first.
func TestDecideOrder(t *testing.T) {
	offences := []struct {
		code  string
		apply func(*Config, *Question)
	}{
		{CodeNeverBridged, func(_ *Config, q *Question) { q.Forms = append(q.Forms, "task") }},
		{CodeUnknownTool, func(_ *Config, q *Question) { q.Known = false }},
		{CodeNotBridged, func(_ *Config, q *Question) { q.Selection = []string{"other"} }},
		{CodeFence, func(_ *Config, q *Question) { q.Fence = []string{"other"} }},
		{CodeDisabled, func(c *Config, _ *Question) { c.Deny = []string{"read_*"} }},
		{CodeBudget, func(c *Config, q *Question) { c.MaxCallsPerRun = 1; q.Calls = 1 }},
	}
	for bits := range 1 << len(offences) {
		var cfg Config
		q := ask("read_file")
		want := ""
		for i, o := range offences {
			if bits&(1<<i) == 0 {
				continue
			}
			o.apply(&cfg, &q)
			if want == "" {
				want = o.code
			}
		}
		d := mustNew(t, cfg).Decide(q)
		if d.Code != want || (d.Answer == Allow) != (want == "") {
			t.Errorf("offences %06b: got %s %q, want code %q", bits, d.Answer, d.Code, want)
		}
	}
}

// A script may write a tool's name as its source does. Whatever is configured, that
// is answered as the identifier is, and a deny entry in any form meets any spelling.
func TestDecideBySpelling(t *testing.T) {
	forms := []string{"get_thing_3", "get-thing.3", "my_srv_get_thing_3", "my-srv_get-thing.3", "my-srv.get-thing.3", "my-srv.get_thing_3"}
	spellings := []string{"get_thing_3", "get-thing.3", "get-thing-3", "get thing 3"}
	cfgs := []Config{{}, {ExtraTools: []string{"get-thing-3"}}, {Tools: []string{"get_thing_3"}}, {ExtraTools: []string{"my-srv.get_thing_3"}}, {Tools: []string{"thing_3"}}}
	for _, form := range forms {
		cfgs = append(cfgs, Config{ExtraTools: []string{"get_thing_3"}, Deny: []string{form}})
	}
	lists := [][]string{nil, {}, {"get_thing_3"}, {"get-thing.3"}, {"my_srv.get-thing-3"}, {"thing.3"}}
	for _, cfg := range cfgs {
		p := mustNew(t, cfg)
		for _, selection := range lists {
			for _, fence := range lists {
				for _, via := range []Via{ViaScript, ViaDirect} {
					q := Question{Via: via, Forms: forms, Known: true, Selection: selection, Fence: fence}
					want := p.Decide(with(q, func(q *Question) { q.Tool = forms[0] }))
					for _, spelling := range spellings {
						got := p.Decide(with(q, func(q *Question) { q.Tool = spelling }))
						if got.Answer != want.Answer || got.Code != want.Code {
							t.Errorf("%+v, selection %q, fence %q, %s: %q is answered %s %s, the identifier %s %s", cfg, selection, fence, via, spelling, got.Answer, got.Code, want.Answer, want.Code)
						}
						if len(cfg.Deny) > 0 && got.Answer != Deny {
							t.Errorf("deny %q does not meet %q", cfg.Deny, spelling)
						}
					}
				}
			}
		}
	}
}

func TestHintsNameWhatToSet(t *testing.T) {
	p := mustNew(t, Config{MaxCallsPerRun: 1, Deny: []string{"current_time"}})
	for key, q := range map[string]Question{
		"policy.max_calls_per_run": with(ask("read_file"), func(q *Question) { q.Calls = 1 }),
		"policy.extra_tools":       ask("write_file"),
		"policy.deny":              ask("current_time"),
	} {
		d := p.Decide(q)
		if !strings.Contains(d.Hint, key) || strings.Contains(d.Reason, key) {
			t.Errorf("the hint %q does not name %s, or the reason %q does", d.Hint, key, d.Reason)
		}
	}
}

// A request and a turn can only take away from what a configured ceiling allows.
func TestRequestNeverWidens(t *testing.T) {
	lists := [][]string{nil, {}, {"a"}, {"b"}, {"a", "b"}, {"*"}, {"c"}}
	for _, cfg := range []Config{{Tools: []string{"a"}}, {Tools: []string{"a"}, ExtraTools: []string{"b"}}, {Tools: []string{"a", "b"}, Deny: []string{"b"}}} {
		p := mustNew(t, cfg)
		for _, tool := range []string{"a", "b", "c"} {
			plain := p.Decide(ask(tool)).Answer
			for _, sel := range lists {
				for _, fence := range lists {
					q := ask(tool)
					q.Selection, q.Fence = sel, fence
					if got := p.Decide(q).Answer; got == Allow && plain != Allow {
						t.Errorf("%+v: selection %q and fence %q opened %q", cfg, sel, fence, tool)
					}
				}
			}
		}
	}
}

func TestAvailable(t *testing.T) {
	for code, want := range map[string]bool{"": true, CodeUnknownTool: false, CodeNeverBridged: false, CodeNotBridged: false, CodeFence: true, CodeDisabled: true, CodeBudget: true} {
		if got := (Decision{Code: code}).Available(); got != want {
			t.Errorf("Available with code %q = %t, want %t", code, got, want)
		}
	}
}

func TestOffered(t *testing.T) {
	all := []belljar.Tool{
		{Name: "write_file"}, {Name: "search_files"}, {Name: "execute_code"}, {Name: "read_file"},
		{Name: "fs_read_file", Forms: []string{"fs_read_file", "read_file"}}, {Name: "query", Forms: []string{"query", "db.query"}},
	}
	cases := []struct {
		name             string
		cfg              Config
		selection, fence []string
		want             []string
	}{
		{name: "curated, sorted; another source's read_file is not it", want: []string{"read_file", "search_files"}},
		{name: "a clashing tool by its own name", cfg: Config{ExtraTools: []string{"fs.read_file"}}, want: []string{"fs_read_file", "read_file", "search_files"}},
		{name: "deny finds it by any name", cfg: Config{Tools: []string{"fs_read_file", "query"}, Deny: []string{"read_file"}}, want: []string{"query"}},
		{name: "fence means the name scripts use", cfg: Config{ExtraTools: []string{"fs_read_file"}}, fence: []string{"read_file"}, want: []string{"read_file"}},
		{name: "extra", cfg: Config{ExtraTools: []string{"db_query"}}, want: []string{"query", "read_file", "search_files"}},
		{name: "selection", selection: []string{"write_file", "execute_code"}, want: []string{"write_file"}},
		{name: "fence", fence: []string{"search_files", "write_file"}, want: []string{"search_files"}},
		{name: "empty fence", fence: []string{}, want: []string{}},
		{name: "deny", cfg: Config{Deny: []string{"*read*"}}, want: []string{"search_files"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := []string{}
			for _, tool := range mustNew(t, c.cfg).Offered(all, c.selection, c.fence) {
				got = append(got, tool.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if all[0].Name != "write_file" {
		t.Error("Offered reordered the caller's slice")
	}
}

func TestNewRefuses(t *testing.T) {
	cases := []struct {
		name string
		cfg  Config
		want []string
	}{
		{"empty entry", Config{Deny: []string{"a", ""}}, []string{"policy.deny: entry 2 is empty"}},
		{"space around", Config{Tools: []string{" a"}}, []string{"policy.tools: ' a' begins or ends with a space"}},
		{"pattern in tools", Config{Tools: []string{"read_*"}}, []string{"policy.tools: 'read_*': patterns are only understood in policy.deny"}},
		{"pattern in extra_tools", Config{ExtraTools: []string{"*"}}, []string{"policy.extra_tools: '*': patterns"}},
		{"other pattern characters", Config{Deny: []string{"a[bc]", "d?"}}, []string{"'a[bc]' is no tool name", "'d?' is no tool name"}},
		{"negative budget", Config{MaxCallsPerRun: -1}, []string{"policy.max_calls_per_run: -1 is negative"}},
		{"every problem at once", Config{Tools: []string{""}, Deny: []string{"?"}, MaxCallsPerRun: -2}, []string{"policy.tools", "policy.deny", "policy.max_calls_per_run"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(c.cfg)
			var r *belljar.Refusal
			if !errors.As(err, &r) || r.Code != belljar.CodeBadConfig || r.Hint == "" {
				t.Fatalf("New = %v, want a bad_config refusal with a hint", err)
			}
			for _, w := range c.want {
				if !strings.Contains(r.Reason, w) {
					t.Errorf("reason %q lacks %q", r.Reason, w)
				}
			}
		})
	}
}

// A configuration that the caller changes later must not change the policy.
func TestNewCopies(t *testing.T) {
	cfg := Config{Deny: []string{"x"}}
	p := mustNew(t, cfg)
	cfg.Deny[0] = "y"
	if d := p.Decide(with(ask("x"), func(q *Question) { q.Via = ViaDirect })); d.Code != CodeDisabled {
		t.Errorf("code %q, want %q", d.Code, CodeDisabled)
	}
}

func TestChecks(t *testing.T) {
	cases := []struct {
		name  string
		cfg   Config
		state belljar.CheckState
		want  string
	}{
		{"default", Config{}, belljar.CheckOK, "Scripts reach the curated tools and 0 extra; 0 deny entries; 1000 calls a run."},
		{"never bridged in a list", Config{ExtraTools: []string{"task"}}, belljar.CheckWarn, "policy.extra_tools: 'task' is never bridged"},
		{"denied in a list", Config{Tools: []string{"drop_x"}, Deny: []string{"drop_*"}}, belljar.CheckWarn, "policy.tools: 'drop_x' is disabled by policy.deny"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := mustNew(t, c.cfg).Checks()
			if len(got) != 1 || got[0].State != c.state || !strings.Contains(got[0].Meaning, c.want) {
				t.Errorf("got %+v, want one %s with %q", got, c.state, c.want)
			}
		})
	}
}

// Decide and Offered share nothing that changes; the race detector says so.
func TestDecideHammer(t *testing.T) {
	p := mustNew(t, Config{ExtraTools: []string{"x"}, Deny: []string{"drop_*", "y"}})
	tools := []belljar.Tool{{Name: "x"}, {Name: "read_file"}, {Name: "drop_it"}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 300 {
				q := ask("drop_it", "drop-it")
				q.Selection, q.Fence, q.Calls = []string{"x", "drop_it"}, []string{"x", "drop_it"}, int64(i)
				if d := p.Decide(q); d.Code != CodeDisabled {
					t.Errorf("code %q", d.Code)
					return
				}
				if n := len(p.Offered(tools, nil, nil)); n != 2 {
					t.Errorf("offered %d tools, want 2", n)
					return
				}
			}
		})
	}
	wg.Wait()
}
