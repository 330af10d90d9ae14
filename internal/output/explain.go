package output

import (
	"fmt"
	"strconv"
	"time"

	"github.com/belljar/belljar"
)

// Explain gives the sentence for Result.Error: why a result is not OK, in words a
// model can act on. It is empty for a result that is OK. For a fault, what says in
// words what failed; it is not looked at otherwise.
func Explain(res *belljar.Result, what string) string {
	switch res.Status {
	case belljar.StatusTimedOut:
		return fmt.Sprintf(explainTimeout, duration(res.Limits.TimeoutMS))
	case belljar.StatusOutOfMemory:
		return fmt.Sprintf(explainMemory, size(res.Limits.MemoryBytes))
	case belljar.StatusOutputLimit:
		return fmt.Sprintf(explainOutput, size(res.Limits.OutputBytes))
	case belljar.StatusCancelled:
		return explainCancel
	case belljar.StatusRefused:
		if res.Refusal != nil {
			return res.Refusal.Error()
		}
	case belljar.StatusFailed:
		return fmt.Sprintf(explainFault, CallName(res.Kind), what, res.Fault)
	case belljar.StatusExited, belljar.StatusSignalled:
		if res.Stage == belljar.StageCompile {
			return explainCompile
		}
	}
	return ""
}

// CallName is the public name of the call that makes a run of this kind.
func CallName(kind belljar.Kind) string {
	if kind == belljar.KindSnippet {
		return "run_snippet"
	}
	return "execute_code"
}

// duration writes milliseconds as 30s, 2.5s or 90s.
func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// size writes bytes in the largest unit that divides them well: 512 MiB, 1.5 GiB.
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	return strconv.FormatFloat(float64(int64(f*10))/10, 'f', -1, 64) + " " + units[u]
}
