package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/belljar/belljar"
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
	if quiet || res.Stage != belljar.StageRun || res.Kind != belljar.KindScript && !a.errTTY {
		return
	}
	for _, d := range res.Denials {
		a.say("refused by the sandbox: %s", d.Explain)
	}
	a.say("%s", summary(res))
}

func ending(res *belljar.Result) string {
	switch {
	case res.Refusal != nil:
		return res.Refusal.Error()
	case res.Error != nil && res.Fault != "" && !strings.Contains(*res.Error, res.Fault):
		return *res.Error + " (fault " + res.Fault + ")"
	case res.Error != nil:
		return *res.Error
	}
	return "the run ended as " + string(res.Status)
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
	if len(res.Isolation.Missing) > 0 {
		names := make([]string, len(res.Isolation.Missing))
		for i, m := range res.Isolation.Missing {
			names[i] = m.Protection
		}
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
