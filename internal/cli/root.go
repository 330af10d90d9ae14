package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/belljar/belljar/internal/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const about = `Belljar runs model-written code under glass: a program runs in a real sandbox,
may call the tools you give it, and every call is decided by policy and recorded.`

// root builds the tree of commands. It must stay cheap: every start pays for all
// of it.
func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false
	var showVersion bool
	root := &cobra.Command{
		Use:           "belljar",
		Short:         "Run model-written code under glass",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{text: unknownCommand(cmd, args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return a.printVersion()
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the version")
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{text: badFlag(cmd, err)} })
	root.AddCommand(a.runCommand(), a.mcpCommand(), a.doctorCommand(), a.toolsCommand(), a.auditCommand(), a.benchCommand(), a.versionCommand())
	return root
}

// usage tells whether an error is about the command line, and puts cobra's own
// words into ours.
func (a *app) usage(cmd *cobra.Command, err error) (*usageError, bool) {
	if u, ok := errors.AsType[*usageError](err); ok {
		return u, true
	}
	text := err.Error()
	for _, start := range []string{"unknown command ", "accepts ", "requires ", "required flag", "if any flags in the group", "at least one of the flags", "invalid argument "} {
		if strings.HasPrefix(text, start) {
			first, _, _ := strings.Cut(text, "\n")
			return &usageError{text: fmt.Sprintf("%s; %q tells more.", first, cmd.CommandPath()+" --help")}, true
		}
	}
	return nil, false
}

func unknownCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	return fmt.Sprintf("there is no command %q; %s", word, meant(word, names, "", fmt.Sprintf("%q lists the commands.", cmd.CommandPath()+" --help")))
}

func badFlag(cmd *cobra.Command, err error) string {
	help := cmd.CommandPath() + " --help"
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name, dashes := missing.GetSpecifiedName(), "--"
		if missing.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return fmt.Sprintf("%s has no flag %s%s; %s", cmd.CommandPath(), dashes, name, meant(name, names, "--", fmt.Sprintf("%q lists them.", help)))
	}
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Sprintf("--%s: %v.", value.GetFlag().Name, value.Unwrap())
	}
	return fmt.Sprintf("%s; %q tells more.", strings.TrimSpace(err.Error()), help)
}

// meant names the words that a mistyped one is near to, and otherwise says what
// else helps.
func meant(word string, list []string, prefix, otherwise string) string {
	near := config.Nearest(word, list)
	if len(near) == 0 {
		return otherwise
	}
	return "did you mean " + prefix + strings.Join(near, " or "+prefix) + "?"
}

// noArgs refuses operands in our words.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return &usageError{text: unknownCommand(cmd, args[0])}
	}
	return &usageError{text: fmt.Sprintf("%s takes no operand, but was given %q.", cmd.CommandPath(), args[0])}
}
