package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/jar"
)

// checkLimits refuses limits in the words of the flags, and notes which of them
// are more than can be had.
func checkLimits(req *belljar.Request, eng Engine) (lowered []string, err error) {
	standard, ceiling := eng.Bounds(req.Kind, req.Lang)
	least := jar.Least()
	ask := req.Limits
	for _, l := range []struct {
		flag                     string
		asked                    *int64
		least, standard, ceiling int64
		show                     func(int64) string
	}{
		{"--timeout", ask.TimeoutMS, least.Timeout.Milliseconds(), standard.Timeout.Milliseconds(), ceiling.Timeout.Milliseconds(), showTime},
		{"--memory", ask.MemoryBytes, int64(least.Memory), int64(standard.Memory), int64(ceiling.Memory), showSize},
		{"--processes", ask.Processes, least.Processes, standard.Processes, ceiling.Processes, showCount},
		{"--disk", ask.DiskBytes, int64(least.Disk), int64(standard.Disk), int64(ceiling.Disk), showSize},
		{"--output", ask.OutputBytes, int64(least.OutputBytes), int64(standard.OutputBytes), int64(ceiling.OutputBytes), showSize},
	} {
		switch {
		case l.asked == nil:
		case *l.asked < l.least:
			return nil, belljar.Refuse(belljar.CodeBadLimit,
				fmt.Sprintf("Give %s to %s, for example %s.", l.show(l.least), l.show(l.ceiling), l.show(l.standard)),
				"%s is %s.", l.flag, l.show(*l.asked))
		case *l.asked > l.ceiling:
			lowered = append(lowered, fmt.Sprintf("%s is brought down to %s, the most that a run gets here.", l.flag, l.show(l.ceiling)))
		}
	}
	return lowered, nil
}

func showTime(ms int64) string {
	text := (time.Duration(ms) * time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func showSize(n int64) string {
	if n < 1<<10 {
		return plural(n, "byte")
	}
	return language.Size(n).String()
}

func showCount(n int64) string { return fmt.Sprint(n) }
