package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/audit"
	"github.com/belljar/belljar/internal/output"
	"github.com/spf13/cobra"
)

// recordList is the output of audit list --json, newest first.
type recordList struct {
	Records []belljar.Record `json:"records"`
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List records, newest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			if asJSON {
				if records == nil {
					records = []belljar.Record{}
				}
				if perr := a.printJSON(recordList{records}); perr != nil {
					return perr
				}
			} else if perr := a.printRecords(records); perr != nil {
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
	fl.StringVar(&f.Outcome, "outcome", "", "records that ended so: exited, timed_out, ..., for calls ok, error, denied, cut_off")
	fl.StringVar(&since, "since", "", "records not older than this: 15m, 2h, 7d, or a time like 2006-01-02T15:04:05Z")
	fl.IntVarP(&f.Limit, "limit", "n", audit.DefaultLimit, "at most so many records")
	fl.StringVar(&s.config, "config", "", "configuration file")
	fl.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
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

func (a *app) printRecords(records []belljar.Record) error {
	if len(records) == 0 {
		a.say("no records match.")
		return nil
	}
	rows := [][]string{{"TIME", "RUN", "NAME", "OUTCOME", "TOOK", "SESSION", "CALLER", "SUMMARY"}}
	for _, r := range records {
		outcome := r.Outcome
		if r.Code != "" {
			outcome += " (" + r.Code + ")"
		}
		rows = append(rows, []string{
			r.Time.Local().Format("2006-01-02 15:04:05"), r.Run, r.Name, outcome, wall(r.DurationMS), r.Session, r.Caller,
			clipped(r.Summary, 60),
		})
	}
	return a.printTable(rows)
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
