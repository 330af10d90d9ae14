package cli

import (
	"encoding/json"
	"fmt"

	"github.com/belljar/belljar/internal/output"
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
	InputSchema json.RawMessage `json:"input_schema"`
}

func (a *app) toolsCommand() *cobra.Command {
	var f settingsFlags
	var selection, fence []string
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that a script may call",
		Long: `List the tools that a script may call, each as a script calls it. --all lists
the others too, and why they are not offered.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := a.settings(&f)
			if err != nil {
				return err
			}
			eng, err := a.open(cmd.Context(), set, a.log())
			if err != nil {
				return err
			}
			tools, problems := eng.Tools(cmd.Context(), selection, fence)
			if err := eng.Close(); err != nil {
				problems = append(problems, err)
			}
			list := listTools(tools, problems, all)
			if asJSON {
				err = a.printJSON(list)
			} else {
				err = a.printTools(list, len(tools))
			}
			if err == nil && len(list.Problems) > 0 {
				return exitError(1)
			}
			return err
		},
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.StringArrayVar(&selection, "tool", nil, "as in run: instead of the default set (repeatable)")
	fl.StringArrayVar(&fence, "fence", nil, "as in run: narrow to this tool (repeatable)")
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
			Offered: t.Why == "", Code: t.Code, Reason: t.Why, InputSchema: t.InputSchema,
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

func (a *app) printTools(list toolList, all int) error {
	for _, t := range list.Tools {
		text := t.Signature
		if !t.Offered {
			text += "\n    not offered: " + t.Reason
		}
		if d := firstLine(t.Description); d != "" {
			text += "\n    " + d
		}
		if _, err := fmt.Fprintf(a.out, "%s\n", output.NeutralString(text)); err != nil {
			return err
		}
	}
	for _, p := range list.Problems {
		a.say("%s", p)
	}
	if len(list.Tools) == 0 && len(list.Problems) == 0 {
		a.say("%s", noTools(all))
	}
	return nil
}

func noTools(all int) string {
	if all > 0 {
		return fmt.Sprintf("none of the %d tools is offered to scripts; --all says why.", all)
	}
	return "there are no tools: --workspace DIR opens the built-in ones on a folder, --mcp-config FILE those of MCP servers."
}
