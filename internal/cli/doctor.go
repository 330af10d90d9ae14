package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/output"
	"github.com/spf13/cobra"
)

// doctorReport is the output of doctor --json.
type doctorReport struct {
	OK     bool            `json:"ok"` // nothing fails
	Checks []belljar.Check `json:"checks"`
}

func (a *app) doctorCommand() *cobra.Command {
	var f settingsFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what works on this machine, and what to do about the rest",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rep := a.examine(cmd, &f)
			if asJSON {
				if err := a.printJSON(rep); err != nil {
					return err
				}
			} else if err := a.printChecks(rep.Checks); err != nil {
				return err
			}
			if !rep.OK {
				return exitError(1)
			}
			return nil
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// examine collects the checks. What keeps the jar from opening is the first of
// them: doctor is what one calls when nothing works.
func (a *app) examine(cmd *cobra.Command, f *settingsFlags) doctorReport {
	var checks []belljar.Check
	set, err := a.settings(f)
	if err != nil {
		checks = append(checks, failing("configuration", err))
	} else {
		meaning := "No configuration file; the defaults apply."
		if len(set.Files) > 0 {
			meaning = "Read: " + strings.Join(set.Files, ", ") + "."
		}
		checks = append(checks, belljar.Check{Name: "configuration", State: belljar.CheckOK, Meaning: meaning})
		eng, err := a.open(cmd.Context(), set, a.log())
		if err != nil {
			checks = append(checks, failing("engine", err))
		} else {
			checks = append(checks, eng.Checks(cmd.Context())...)
			if err := eng.Close(); err != nil {
				checks = append(checks, failing("close", err))
			}
		}
	}
	ok := !slices.ContainsFunc(checks, func(c belljar.Check) bool { return c.State == belljar.CheckFail })
	return doctorReport{OK: ok, Checks: checks}
}

func failing(name string, err error) belljar.Check {
	c := belljar.Check{Name: name, State: belljar.CheckFail, Meaning: err.Error()}
	if r, ok := errors.AsType[*belljar.Refusal](err); ok {
		c.Meaning, c.Remedy = strings.TrimSpace(r.Reason), r.Hint
	}
	return c
}

func (a *app) printChecks(checks []belljar.Check) error {
	wide := 0
	for _, c := range checks {
		wide = max(wide, len(c.Name))
	}
	for _, c := range checks {
		text := fmt.Sprintf("%s %-*s  %s\n", a.mark(c.State), wide, c.Name, indent(c.Meaning, wide+7))
		if c.Remedy != "" && c.State != belljar.CheckOK {
			text += fmt.Sprintf("     %-*s  -> %s\n", wide, "", indent(c.Remedy, wide+10))
		}
		if _, err := a.out.Write([]byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// indent keeps the further lines of a text under its first.
func indent(text string, by int) string {
	return strings.ReplaceAll(output.NeutralString(text), "\n", "\n"+strings.Repeat(" ", by))
}

// mark is the verdict in four letters, coloured for a person who has not said no
// to that (https://no-color.org).
func (a *app) mark(s belljar.CheckState) string {
	text, colour := fmt.Sprintf("%-4s", s), map[belljar.CheckState]string{
		belljar.CheckOK: "32", belljar.CheckWarn: "33", belljar.CheckFail: "31",
	}[s]
	if !a.outTTY || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
