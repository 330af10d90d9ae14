package cli

import (
	"encoding/json"
	"fmt"

	"github.com/belljar/belljar/internal/output"
	"github.com/belljar/belljar/internal/policy"
	"github.com/spf13/cobra"
)

// toolList is the output of tools --json.
type toolList struct {
	Tools []toolLine `json:"tools"`
	// Problems are sources of tools that could not be asked.
	Problems []string `json:"problems"`
}

// toolLine is one tool of toolList.
type toolLine struct {
	Name        string          `json:"name"`
	Signature   string          `json:"signature"`
	Description string          `json:"description"`
	Source      string          `json:"source"`
	Offered     bool            `json:"offered"`          // a script may call it
	Code        string          `json:"code,omitempty"`   // why not, stable
	Reason      string          `json:"reason,omitempty"` // why not, in words
	Hint        string          `json:"hint,omitempty"`   // what to do about it
	InputSchema json.RawMessage `json:"input_schema"`
}

func (a *app) toolsCommand() *cobra.Command {
	var f settingsFlags
	var chosen, fence []string
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that a script may call",
		Long: `List the tools that a script may call, each as a script calls it. --all lists
the others too, and why they are not offered.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.settings(&f)
			if err != nil {
				return err
			}
			eng, err := a.open(cmd.Context(), cfg, a.log())
			if err != nil {
				return err
			}
			tools, problems := eng.Tools(cmd.Context(), selection(chosen, f.extra), fence)
			if err := eng.Close(); err != nil {
				problems = append(problems, err)
			}
			list := listTools(tools, problems, all)
			if asJSON {
				err = a.printJSON(list)
			} else {
				set := "the default set"
				if chosen != nil {
					set = "the tools of --tool"
				} else if len(cfg.Config.Policy.Tools) > 0 {
					set = "the configured set (policy.tools)"
				}
				err = a.printTools(list, len(tools), set)
			}
			if err == nil && len(list.Problems) > 0 {
				return exitError(1)
			}
			return err
		},
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.Var(namesFlag{&chosen}, "tool", "as in run: instead of the default set (repeatable)")
	fl.Var(namesFlag{&fence}, "fence", "as in run: narrow to these tools (repeatable)")
	fl.BoolVar(&all, "all", false, "also list tools that are not offered, and why")
	fl.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func listTools(tools []Tool, problems []error, all bool) toolList {
	list := toolList{Tools: []toolLine{}, Problems: []string{}}
	for _, t := range tools {
		if t.Why != "" && !all {
			continue
		}
		line := toolLine{
			Name: t.Name, Signature: t.Signature, Description: t.Description, Source: t.Source,
			Offered: t.Why == "", Code: t.Code, Reason: t.Why, Hint: t.Hint, InputSchema: t.InputSchema,
		}
		if !json.Valid(line.InputSchema) {
			line.InputSchema = json.RawMessage("null")
		}
		list.Tools = append(list.Tools, line)
	}
	for _, p := range problems {
		list.Problems = append(list.Problems, sentence(p))
	}
	return list
}

// printTools shows a list; all is how many tools there are, set what those are
// outside of that could be added.
func (a *app) printTools(list toolList, all int, set string) error {
	addable := false
	for _, t := range list.Tools {
		text := t.Signature
		if !t.Offered {
			text += "\n    not offered: " + notOffered(t, set)
			addable = addable || t.Code == policy.CodeNotBridged
		}
		if d := firstLine(t.Description); d != "" {
			text += "\n    " + d
		}
		if _, err := fmt.Fprintf(a.out, "%s\n", output.NeutralString(text)); err != nil {
			return err
		}
	}
	if addable {
		a.say("--extra-tool NAME lets scripts call one more, and so does extra_tools under [policy] in the configuration.")
	}
	for _, p := range list.Problems {
		a.say("%s", p)
	}
	if len(list.Tools) == 0 && len(list.Problems) == 0 {
		a.say("%s", noTools(all))
	}
	return nil
}

// notOffered says briefly why scripts cannot call a tool.
func notOffered(t toolLine, set string) string {
	switch t.Code {
	case policy.CodeNotBridged:
		return "outside " + set
	case policy.CodeNeverBridged:
		return "no script can call it"
	case policy.CodeFence:
		return "outside --fence"
	case policy.CodeDisabled:
		return "disabled by policy.deny"
	}
	return t.Reason
}

func noTools(all int) string {
	if all > 0 {
		return fmt.Sprintf("none of the %d tools is offered to scripts; --all says why.", all)
	}
	return "there are no tools: --workspace DIR opens the built-in ones on a folder, --mcp-config FILE those of MCP servers."
}
