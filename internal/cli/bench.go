package cli

import (
	"fmt"
	"os"
	"strconv"

	suite "github.com/belljar/belljar/internal/bench"
	"github.com/spf13/cobra"
)

func (a *app) benchCommand() *cobra.Command {
	var opt suite.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Compare sandboxed runs with bare ones on this machine",
		Long: `Compare Belljar with the bare programs it wraps, side by side in one run, as
ratios: the median over rounds of each case divided by its base in the same
round. Times say something about this machine only.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.Rounds < 5 {
				return &usageError{text: "--rounds must be at least 5."}
			}
			if !asJSON {
				opt.Progress = a.err
			}
			if exe, err := os.Executable(); err == nil {
				opt.Command = exe
			}
			rows, skipped, err := suite.Run(cmd.Context(), opt)
			if err != nil {
				return err
			}
			for _, s := range skipped {
				a.say("left out: %s.", s)
			}
			if asJSON {
				return a.printJSON(rows)
			}
			return a.benchTable(rows)
		},
	}
	cmd.Flags().IntVar(&opt.Rounds, "rounds", 60, "rounds of each comparison")
	cmd.Flags().StringVar(&opt.Python, "python", "", "bare interpreter to compare with (default /usr/bin/python3)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array of rows")
	return cmd
}

func (a *app) benchTable(rows []suite.Row) error {
	table := [][]string{{"COMPARISON", "CASE", "MEDIAN", "P99", "RATIO", "P10-P90", "FAULTS", "GOAL"}}
	for _, r := range rows {
		faults, goal := "", ""
		if r.Faults >= 0 {
			faults = strconv.FormatInt(r.Faults, 10)
		}
		if r.Met != nil {
			sign, verdict := "<=", "met"
			if r.Unit != "ms" {
				sign = ">="
			}
			if !*r.Met {
				verdict = "missed"
			}
			goal = fmt.Sprintf("%s %.2f %s", sign, r.Goal, verdict)
		}
		number := "%.2f " + r.Unit
		if r.Unit != "ms" {
			number = "%.0f " + r.Unit
		}
		table = append(table, []string{r.Group, r.Case, fmt.Sprintf(number, r.Median), fmt.Sprintf(number, r.P99), fmt.Sprintf("%.2f", r.Ratio),
			fmt.Sprintf("%.2f-%.2f", r.P10, r.P90), faults, goal})
	}
	return a.printTable(table)
}
