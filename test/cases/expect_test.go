package cases

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

// compare says what in a reply is not as expected. What takes more than the reply
// (harms, the journal, what is true afterwards) is not looked at here.
func compare(e *Expect, r *reply) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	res := r.res
	if e.Alt != nil && is(e.Alt.Outcome, res) {
		return sound(r)
	}
	if e.Stage != "" && string(res.Stage) != e.Stage {
		say("stage %s, want %s", res.Stage, e.Stage)
	}
	if len(e.StageAny) > 0 && !slices.Contains(e.StageAny, string(res.Stage)) {
		say("stage %s, want one of %v", res.Stage, e.StageAny)
	}
	if e.Outcome != "" && !is(e.Outcome, res) {
		say("status %s, want %s", res.Status, e.Outcome)
	}
	if len(e.OutcomeAny) > 0 && !slices.ContainsFunc(e.OutcomeAny, func(o string) bool { return is(o, res) }) {
		say("status %s, want one of %v", res.Status, e.OutcomeAny)
	}
	for _, o := range e.NotOutcome {
		if is(o, res) {
			say("reported as %s", o)
		}
	}
	code, signal := -1, -1
	if res.ExitCode != nil {
		code = *res.ExitCode
	}
	if res.Signal != nil {
		signal = *res.Signal
	}
	if e.ExitCode != nil && code != *e.ExitCode {
		say("exit code %d, want %d", code, *e.ExitCode)
	}
	if e.ExitCodeNot != nil && code == *e.ExitCodeNot {
		say("exit code %d", code)
	}
	if e.Signal != nil && signal != *e.Signal {
		say("signal %d, want %d", signal, *e.Signal)
	}
	if len(e.SignalAny) > 0 && res.Status == belljar.StatusSignalled && !slices.Contains(e.SignalAny, signal) {
		say("signal %d, want one of %v", signal, e.SignalAny)
	}
	for _, s := range slices.Concat(e.StdoutContains, e.LastStdoutContains) {
		if !strings.Contains(res.Stdout, s) {
			say("%q is not in stdout", s)
		}
	}
	for _, s := range e.StdoutNotContains {
		if strings.Contains(res.Stdout, s) {
			say("%q is in stdout", s)
		}
	}
	if e.StdoutExact != nil && res.Stdout != *e.StdoutExact {
		say("stdout is not %q", *e.StdoutExact)
	}
	for _, s := range e.StderrContains {
		if !strings.Contains(res.Stderr, s) {
			say("%q is not in stderr", s)
		}
	}
	for _, s := range e.StderrNotContains {
		if strings.Contains(res.Stderr, s) {
			say("%q is in stderr", s)
		}
	}
	if e.Truncated && !res.Output.Stdout.Truncated && !res.Output.Stderr.Truncated {
		say("no stream is marked as cut")
	}
	if ms := r.took.Milliseconds(); e.MinMS > 0 && ms < e.MinMS {
		say("the reply came after %d ms, want %d at least", ms, e.MinMS)
	}
	return append(append(wrong, artifacts(e.Artifacts, res.Artifacts)...), sound(r)...)
}

// sound says what no result may be, whatever the program did. It includes that
// the reply is text, so valid_utf8 asks for nothing more.
func sound(r *reply) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	res := r.res
	for _, text := range append(slices.Clone(r.texts), res.Stdout, res.Stderr) {
		if !utf8.ValidString(text) {
			say("not UTF-8: %.200q", text)
		}
	}
	own := res.Stage == belljar.StageRun && (res.Status == belljar.StatusExited || res.Status == belljar.StatusSignalled)
	if res.OK != own {
		say("ok is %v for %s at stage %s", res.OK, res.Status, res.Stage)
	}
	if res.OK != (res.Error == nil) {
		say("ok is %v, error %v", res.OK, res.Error)
	}
	if (res.Status == belljar.StatusRefused) != (res.Refusal != nil) {
		say("status %s, refusal %v", res.Status, res.Refusal)
	}
	if res.Refusal != nil && (res.Refusal.Reason == "" || res.Refusal.Code == "") {
		say("a refusal without a reason or a code: %+v", res.Refusal)
	}
	if own && res.ExitCode == nil {
		say("a program that ended has no exit code")
	}
	if res.Signal != nil && res.ExitCode != nil && *res.ExitCode != 128+*res.Signal {
		say("signal %d, exit code %d", *res.Signal, *res.ExitCode)
	}
	if res.Stage == belljar.StageRun && res.Status != belljar.StatusFailed && (res.Isolation.Level != belljar.LevelNamespaces || !slices.Contains(res.Isolation.Protections, "seccomp")) {
		say("isolation %+v", res.Isolation)
	}
	for name, s := range map[string]struct {
		text string
		out  belljar.Output
	}{"stdout": {res.Stdout, res.Output.Stdout}, "stderr": {res.Stderr, res.Output.Stderr}} {
		if !s.out.Truncated && s.out.Bytes > int64(len(s.text)) {
			say("%s has %d bytes of %d, and no mark of a cut", name, len(s.text), s.out.Bytes)
		}
	}
	return wrong
}

// artifactWords are what the expectations of artifacts say in words; everything
// else is content.
var artifactWords = map[string]func(pattern string, found []belljar.Artifact) string{
	"absent": absent,
	"absent or listed as a link without content": absent,
	"absent or named as special":                 absent,
	"listing is cut at the count limit and says so, with the true number": func(_ string, found []belljar.Artifact) string {
		if len(found) == 0 {
			return "nothing is listed"
		}
		return ""
	},
	"names in the listing are valid text, escaped where they are not UTF-8, and two different files never share a name": func(_ string, found []belljar.Artifact) string {
		seen := map[string]bool{}
		for _, a := range found {
			if !utf8.ValidString(a.Name) || seen[a.Name] {
				return fmt.Sprintf("name %q", a.Name)
			}
			seen[a.Name] = true
		}
		return ""
	},
}

func absent(pattern string, found []belljar.Artifact) string {
	for _, a := range found {
		if ok, err := path.Match(pattern, a.Name); err != nil || ok && a.Bytes > 0 {
			return fmt.Sprintf("%s is there with %d bytes (%v)", a.Name, a.Bytes, err)
		}
	}
	return ""
}

func artifacts(want map[string]string, found []belljar.Artifact) (wrong []string) {
	for pattern, content := range want {
		if f, ok := artifactWords[content]; ok {
			if what := f(pattern, found); what != "" {
				wrong = append(wrong, "artifact "+pattern+": "+what)
			}
			continue
		}
		sum := sha256.Sum256([]byte(content))
		if !slices.ContainsFunc(found, func(a belljar.Artifact) bool { return a.Name == pattern && a.SHA256 == hex.EncodeToString(sum[:]) }) {
			wrong = append(wrong, "artifact "+pattern+" is missing or has other content")
		}
	}
	return wrong
}

// agree says how two surfaces tell the same program differently. Where a case
// leaves several outcomes open, chance may choose.
func agree(c *Case, a, b *reply) (wrong []string) {
	if a.res.Status != b.res.Status {
		if len(c.Expect.OutcomeAny) > 1 || c.Expect.Alt != nil {
			return nil
		}
		wrong = append(wrong, fmt.Sprintf("status %s and %s", a.res.Status, b.res.Status))
	}
	if x, y := a.res.ExitCode, b.res.ExitCode; (x == nil) != (y == nil) || x != nil && *x != *y {
		if len(c.Expect.OutcomeAny) <= 1 {
			wrong = append(wrong, fmt.Sprintf("exit code %s and %s", number(x), number(y)))
		}
	}
	if own := a.res.OK && b.res.OK; own && a.res.Stdout != b.res.Stdout && varies[c.ID] == "" {
		wrong = append(wrong, fmt.Sprintf("stdout %.1000q and %.1000q", a.res.Stdout, b.res.Stdout))
	}
	return wrong
}

func number(n *int) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// TestCompareTells shows that each expectation can fail.
func TestCompareTells(t *testing.T) {
	n := func(n int) *int { return &n }
	s := func(s string) *string { return &s }
	result := func() *belljar.Result {
		return &belljar.Result{OK: true, Status: belljar.StatusSignalled, Stage: belljar.StageRun, ExitCode: n(139), Signal: n(11), Stdout: "out\n", Stderr: "err\n",
			Output:    belljar.Outputs{Stdout: belljar.Output{Bytes: 4}, Stderr: belljar.Output{Bytes: 4}},
			Isolation: belljar.Isolation{Level: belljar.LevelNamespaces, Protections: []string{"seccomp"}}}
	}
	tests := []struct {
		name   string
		e      Expect
		change func(*belljar.Result)
		want   string
	}{
		{"all well", Expect{Stage: "run", Outcome: "signalled", Signal: n(11), ExitCode: n(139), StdoutExact: s("out\n"), StderrContains: []string{"err"}, SignalAny: []int{9, 11}}, nil, ""},
		{"stage", Expect{Stage: "compile"}, nil, "stage run"},
		{"stages", Expect{StageAny: []string{"compile"}}, nil, "stage run"},
		{"outcome", Expect{Outcome: "exited"}, nil, "status signalled"},
		{"outcomes", Expect{OutcomeAny: []string{"exited", "memory", "disk"}}, nil, "status signalled"},
		{"not outcome", Expect{NotOutcome: []string{"signalled"}}, nil, "reported as signalled"},
		{"disk", Expect{Outcome: "disk"}, func(r *belljar.Result) { r.Denials = []belljar.Denial{{Kind: "limit", What: "disk"}} }, ""},
		{"exit code", Expect{ExitCode: n(0)}, nil, "exit code 139"},
		{"exit code not", Expect{ExitCodeNot: n(139)}, nil, "exit code 139"},
		{"signal", Expect{Signal: n(9)}, nil, "signal 11"},
		{"signals", Expect{SignalAny: []int{9}}, nil, "signal 11"},
		{"stdout", Expect{StdoutContains: []string{"in"}}, nil, `"in" is not`},
		{"last stdout", Expect{LastStdoutContains: []string{"in"}}, nil, `"in" is not`},
		{"stdout not", Expect{StdoutNotContains: []string{"ou"}}, nil, `"ou" is in`},
		{"exact", Expect{StdoutExact: s("out")}, nil, "stdout is not"},
		{"stderr", Expect{StderrContains: []string{"x"}}, nil, `"x" is not`},
		{"stderr not", Expect{StderrNotContains: []string{"e"}}, nil, `"e" is in`},
		{"cut", Expect{Truncated: true}, nil, "no stream"},
		{"unmarked cut", Expect{}, func(r *belljar.Result) { r.Output.Stdout.Bytes = 5 }, "no mark"},
		{"least time", Expect{MinMS: 1}, nil, "after 0 ms"},
		{"text", Expect{}, func(r *belljar.Result) { r.Stdout = "\xff1234" }, "not UTF-8"},
		{"ok", Expect{}, func(r *belljar.Result) { r.OK = false }, "ok is false"},
		{"error", Expect{}, func(r *belljar.Result) { r.Error = s("x") }, "ok is true, error"},
		{"refusal", Expect{}, func(r *belljar.Result) { r.Refusal = &belljar.Refusal{} }, "refusal"},
		{"128 + signal", Expect{}, func(r *belljar.Result) { r.ExitCode = n(1) }, "signal 11, exit code 1"},
		{"isolation", Expect{}, func(r *belljar.Result) { r.Isolation.Level = belljar.LevelProcess }, "isolation"},
		{"artifact", Expect{Artifacts: map[string]string{"a": "x"}}, nil, "artifact a"},
		{"no artifact", Expect{Artifacts: map[string]string{"d/*": "absent"}}, func(r *belljar.Result) { r.Artifacts = []belljar.Artifact{{Name: "d/x", Bytes: 1}} }, "d/x is there"},
		{"alternative", Expect{Outcome: "exited", Alt: &Alternative{Outcome: "signalled"}}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &reply{res: result()}
			if tt.change != nil {
				tt.change(r.res)
			}
			got := strings.Join(compare(&tt.e, r), "; ")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
