package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/output"
)

// runLine says on stderr how the run went. A program that ended by itself gets a
// line if it was a script, whose calls nothing else shows, or if a person looks;
// for a snippet in a pipe stderr is the program's own. A run that we stopped or
// refused is always explained.
func (a *app) runLine(res *belljar.Result, quiet bool) {
	if !res.OK {
		a.say("%s", ending(res))
	}
	if res.Unrecorded != "" {
		a.say("the run is not in the journal: %s", res.Unrecorded)
	}
	if !quiet && res.Status == belljar.StatusSignalled && res.SignalName != nil {
		a.say("the program died on %s.", *res.SignalName)
	}
	if !quiet && wantedTools(res) {
		a.say("this ran as a snippet, which has no tools; use --workspace DIR, --mcp-config FILE or --script.")
	}
	if quiet || res.Stage != belljar.StageRun {
		return
	}
	shown := res.Kind == belljar.KindScript || a.errTTY
	if failed := !res.OK || res.ExitCode != nil && *res.ExitCode != 0; shown || failed {
		for _, d := range res.Denials {
			a.say("refused by the sandbox: %s", d.Explain)
		}
	}
	if !shown {
		return
	}
	a.say("%s", summary(res))
}

// ending says why a run is not OK. What the engine says names the call of the MCP
// server and leaves out the flags, which models do not have.
func ending(res *belljar.Result) string {
	if res.Refusal != nil {
		return output.Sentences([]string{sentence(res.Refusal)})
	}
	if res.Error == nil {
		return "the run ended as " + string(res.Status) + "."
	}
	text := strings.TrimSuffix(*res.Error, ".")
	if res.Status == belljar.StatusFailed {
		if _, what, ok := strings.Cut(text, output.CallName(res.Kind)+" harness failed: "); ok {
			text = "Belljar failed: " + what
		}
		if res.Fault != "" && !strings.Contains(text, res.Fault) {
			text += " (fault " + res.Fault + ")"
		}
	}
	return text + giveMore[res.Status] + "."
}

// giveMore names the flag that raises the limit which a run met.
var giveMore = map[belljar.Status]string{
	belljar.StatusTimedOut:    " (--timeout)",
	belljar.StatusOutOfMemory: " (--memory)",
	belljar.StatusOutputLimit: ", or allow more (--output)",
}

func summary(res *belljar.Result) string {
	var parts []string
	if res.Kind == belljar.KindScript {
		calls := plural(res.ToolCalls.Count, "tool call")
		if res.ToolCalls.Denied > 0 {
			calls += fmt.Sprintf(" (%d denied)", res.ToolCalls.Denied)
		}
		parts = append(parts, calls, size(res.ToolCalls.BytesKeptOut)+" kept out of the context")
	}
	iso := "isolation " + string(res.Isolation.Level)
	var names []string
	for _, m := range res.Isolation.Missing {
		if m.Protection != string(belljar.LevelLandlock) { // missing everywhere in this version; --json has it
			names = append(names, m.Protection)
		}
	}
	if len(names) > 0 {
		iso += " (without " + strings.Join(names, ", ") + ")"
	}
	parts = append(parts, iso, wall(res.Usage.WallMS))
	return strings.Join(parts, ", ")
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func size(n int64) string {
	switch {
	case n < 1<<10:
		return plural(n, "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

func wall(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
