package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/mcpserver"
	"github.com/spf13/cobra"
)

func (a *app) mcpCommand() *cobra.Command {
	var f settingsFlags
	var tools []string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the tool execute_code to an MCP client over stdio",
		Long: `Serve the tool execute_code to an MCP client over stdin and stdout. Clients start
this command themselves: "belljar mcp config --client NAME" prints what to paste
into their configuration.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveMCP(cmd.Context(), &f, tools) },
	}
	f.register(cmd.Flags())
	cmd.Flags().Var(namesFlag{&tools}, "tool", "tools that scripts may call instead of the default set: a,b (repeatable)")
	cmd.AddCommand(a.mcpConfigCommand())
	return cmd
}

func (a *app) serveMCP(ctx context.Context, f *settingsFlags, tools []string) error {
	set, err := a.settings(f)
	if err != nil {
		return err
	}
	// Before anything that could print: from here on stdout is the protocol's.
	transport, err := mcpserver.Stdio()
	if err != nil {
		return err
	}
	log := a.log()
	eng, err := a.open(ctx, set, log)
	if err != nil {
		return err
	}
	chosen := selection(tools, f.extra)
	opt := mcpserver.Options{
		Runner:  choosing{eng, chosen},
		Version: version().Version,
		Log:     log,
		Tools: func(ctx context.Context) []belljar.Tool {
			tools, problems := eng.Tools(ctx, chosen, nil)
			for _, p := range problems {
				log.Warn("tools", "error", p)
			}
			return offered(tools)
		},
	}
	eng.Describe(&opt)
	err = mcpserver.New(opt).Serve(ctx, transport)
	if errors.Is(err, context.Canceled) {
		err = nil // a signal is the ordinary end of a server
	}
	return errors.Join(err, eng.Close())
}

// choosing runs what the server is asked for with the tools that its command line
// named; nil: the configured ones.
type choosing struct {
	Engine
	tools []string
}

func (c choosing) Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
	if c.tools != nil {
		own := *req
		own.Tools = c.tools
		req = &own
	}
	return c.Engine.Run(ctx, req, events)
}

func offered(tools []Tool) []belljar.Tool {
	var list []belljar.Tool
	for _, t := range tools {
		if t.Why == "" {
			list = append(list, t.Tool)
		}
	}
	return list
}

// clientNames is for messages.
func clientNames() string {
	var names []string
	for _, c := range clients {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
