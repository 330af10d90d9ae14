package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// client is an MCP client that reads its servers from a file.
type client struct {
	name  string
	files string // where the snippet goes
	key   string // of the servers in that file
	typed bool   // entries say "type": "stdio"
	after string // what to do then
}

var clients = []client{
	{"claude-code", ".mcp.json in the project's folder", "mcpServers", false, "Start claude in that folder and allow the server when it asks."},
	{"claude-desktop", "claude_desktop_config.json (macOS: ~/Library/Application Support/Claude/, Windows: %APPDATA%\\Claude\\, Linux: ~/.config/Claude/)", "mcpServers", false, "Restart Claude Desktop."},
	{"cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder", "mcpServers", false, "Cursor picks it up by itself; Settings > MCP shows it."},
	{"vscode", ".vscode/mcp.json in the workspace, or the mcp.json of the user profile", "servers", true, "Press Start above the entry."},
	{"windsurf", "~/.codeium/mcp_config.json (older versions: ~/.codeium/windsurf/mcp_config.json)", "mcpServers", false, "Press refresh in the MCP panel."},
	{"copilot", ".mcp.json in the workspace's root, or ~/.copilot/mcp-config.json", "mcpServers", false, "Start a new session."},
}

// clientEntry is one server in a client's file.
type clientEntry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// clientSnippet is the output of mcp config --json.
type clientSnippet struct {
	Client string                            `json:"client"`
	Files  string                            `json:"files"`
	Config map[string]map[string]clientEntry `json:"config"`
}

func (a *app) mcpConfigCommand() *cobra.Command {
	var f settingsFlags
	var tools []string
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config --client NAME",
		Short: "Print what to paste into an MCP client's configuration",
		Long: `Print what to paste into an MCP client's configuration, with absolute paths:
clients start servers in a folder of their own choice. --workspace, --mcp-config,
--config, --extra-tool and --tool are carried over. Clients: ` + clientNames() + ".",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := findClient(name)
			if err != nil {
				return err
			}
			snippet, err := a.snippet(c, &f, tools)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(clientSnippet{c.name, c.files, snippet})
			}
			a.say("paste this into %s. %s", c.files, c.after)
			return a.printPretty(snippet)
		},
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.Var(namesFlag{&tools}, "tool", "tools that scripts may call instead of the default set: a,b (repeatable)")
	fl.StringVar(&name, "client", "", "one of "+clientNames())
	fl.BoolVar(&asJSON, "json", false, "print one JSON object that also names the file")
	complete(cmd, "client", func() []string { return strings.Split(clientNames(), ", ") })
	return cmd
}

func findClient(name string) (client, error) {
	var names []string
	for _, c := range clients {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	if name == "" {
		return client{}, &usageError{text: "mcp config needs --client NAME, one of " + clientNames() + "."}
	}
	return client{}, &usageError{text: fmt.Sprintf("there is no client %q here; %s", name,
		meant(name, names, "", "there are "+clientNames()+"; others take the claude-code form as a rule."))}
}

func (a *app) snippet(c client, f *settingsFlags, tools []string) (map[string]map[string]clientEntry, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil && strings.Contains(real, string(filepath.Separator)+"go-build") {
		a.say("%s is a temporary build that will be gone; install belljar first (go install ./cmd/belljar) and call this again.", self)
	}
	entry := clientEntry{Command: self, Args: []string{"mcp"}}
	if c.typed {
		entry.Type = "stdio"
	}
	for _, flag := range []struct{ name, path string }{
		{"--workspace", f.workspace}, {"--mcp-config", f.mcpConfig}, {"--config", f.config},
	} {
		if flag.path == "" {
			continue
		}
		path := a.absolute(flag.path)
		if _, err := os.Stat(path); err != nil {
			a.say("%s %s: %v; the client will meet the same.", flag.name, path, bare(err))
		}
		entry.Args = append(entry.Args, flag.name, path)
	}
	if f.extra != nil {
		entry.Args = append(entry.Args, "--extra-tool", strings.Join(f.extra, ","))
	}
	if tools != nil {
		entry.Args = append(entry.Args, "--tool", strings.Join(tools, ","))
	}
	return map[string]map[string]clientEntry{c.key: {"belljar": entry}}, nil
}
