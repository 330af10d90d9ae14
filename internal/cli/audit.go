package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/audit"
	"github.com/belljar/belljar/internal/engine"
	"github.com/belljar/belljar/internal/output"
	"github.com/spf13/cobra"
)

// recordList is the output of audit list --json, newest first.
type recordList struct {
	Records []belljar.Record `json:"records"`
	More    bool             `json:"more,omitempty"` // there are older ones that match
}

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read the journal of runs and calls",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.auditListCommand())
	return cmd
}

func (a *app) auditListCommand() *cobra.Command {
	var s settingsFlags
	var f audit.Filter
	var since string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List records, newest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Outcome != "" && !slices.Contains(outcomes, f.Outcome) {
				return &usageError{text: fmt.Sprintf("--outcome: there is no outcome %q; there are %s.", f.Outcome, strings.Join(outcomes, ", "))}
			}
			if limit < 1 {
				return &usageError{text: fmt.Sprintf("--limit: %d is no number of records; give 1 or more.", limit)}
			}
			f.Limit = limit + 1 // whether there are more
			if since != "" {
				at, err := moment(since, time.Now())
				if err != nil {
					return &usageError{text: err.Error()}
				}
				f.Since = at
			}
			set, err := a.settings(&s)
			if err != nil {
				return err
			}
			records, err := records(cmd.Context(), set, f)
			if err != nil && records == nil {
				return err
			}
			if err != nil { // what could be read is shown
				a.say("%s", sentence(err))
			}
			more := len(records) > limit
			if more {
				records = records[:limit]
			}
			if asJSON {
				if records == nil {
					records = []belljar.Record{}
				}
				if perr := a.printJSON(recordList{records, more}); perr != nil {
					return perr
				}
			} else if perr := a.printRecords(records, more); perr != nil {
				return perr
			}
			if err != nil {
				return exitError(1)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.Run, "run", "", "records of this run")
	fl.StringVar(&f.Session, "session", "", "records of this session")
	fl.StringVar(&f.Name, "name", "", "records of this tool, or execute_code or run_snippet")
	fl.StringVar(&f.Outcome, "outcome", "", "records that ended so: "+strings.Join(outcomes, ", "))
	fl.StringVar(&since, "since", "", "records not older than this: 15m, 2h, 7d, or a time like 2006-01-02T15:04:05Z")
	fl.IntVarP(&limit, "limit", "n", audit.DefaultLimit, "at most so many records")
	fl.Var(pathFlag{&s.config, "file"}, "config", "configuration file")
	fl.BoolVar(&asJSON, "json", false, "print one JSON object")
	complete(cmd, "outcome", func() []string { return outcomes })
	return cmd
}

// outcomes are all that a record can say: first of runs, then of calls.
var outcomes = []string{
	string(belljar.StatusExited), string(belljar.StatusSignalled), string(belljar.StatusTimedOut), string(belljar.StatusOutOfMemory),
	string(belljar.StatusOutputLimit), string(belljar.StatusCancelled), string(belljar.StatusRefused), string(belljar.StatusFailed),
	"ok", "error", "denied", "cut_off",
}

// moment reads an age or a point in time.
func moment(s string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		if _, err := fmt.Sscanf(days+";", "%d;", &n); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %q is neither an age (15m, 2h, 7d) nor a time (2006-01-02T15:04:05Z)", s)
}

func (a *app) printRecords(records []belljar.Record, more bool) error {
	if len(records) == 0 {
		a.say("no records match.")
		return nil
	}
	rows := [][]string{{"TIME", "RUN", "NAME", "OUTCOME", "TOOK", "SESSION", "CALLER", "ARGUMENTS", "SUMMARY"}}
	for _, r := range records {
		outcome := r.Outcome
		if r.Code != "" {
			outcome += " (" + r.Code + ")"
		}
		session := r.Session
		if session == engine.NoSession {
			session = "-"
		}
		rows = append(rows, []string{
			r.Time.Local().Format(time.RFC3339), r.Run, r.Name, outcome, wall(r.DurationMS), session, r.Caller,
			clipped(arguments(r), 50), clipped(r.Summary, 60),
		})
	}
	if err := a.printTable(rows); err != nil {
		return err
	}
	if more {
		a.say("these are the newest %d; -n N shows more, --since and the other filters choose.", len(records))
	}
	return nil
}

// arguments shows those of a call as a script writes them. What a run was given is
// its limits, for which there is --json.
func arguments(r belljar.Record) string {
	if r.Event != "call" {
		return ""
	}
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(r.Args), &args) != nil {
		return r.Args
	}
	shown := make([]string, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		shown = append(shown, name+"="+string(args[name]))
	}
	return strings.Join(shown, ", ")
}

// clipped is the first line of a text, not longer than n characters.
func clipped(s string, n int) string {
	line := firstLine(s)
	if runes := []rune(line); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return line
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return output.NeutralString(strings.TrimSpace(line))
}
