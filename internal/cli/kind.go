package cli

import (
	"fmt"
	"strings"

	"github.com/belljar/belljar"
)

// check finds flags that contradict each other: whoever gives both means
// something that would not happen.
func (f *runFlags) check() error {
	if f.script && f.snippet {
		return &usageError{text: "--script and --snippet exclude each other."}
	}
	if !f.snippet {
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"--workspace", f.workspace != ""}, {"--mcp-config", f.mcpConfig != ""}, {"--tool", f.tools != nil},
		{"--extra-tool", f.extra != nil}, {"--fence", f.fence != nil},
	} {
		if flag.given {
			return &usageError{text: fmt.Sprintf("a snippet has no tools, so --snippet and %s exclude each other; leave one out.", flag.name)}
		}
	}
	return nil
}

// kind is what the program is run as: a script where there is something for it
// that a snippet has not, whoever gave it.
func (f *runFlags) kind(cfg *Config) belljar.Kind {
	switch {
	case f.script:
		return belljar.KindScript
	case f.snippet:
		return belljar.KindSnippet
	case f.tools != nil || f.fence != nil,
		cfg.Workspace.Path != "", cfg.MCP.Config != "", len(cfg.MCPServers) > 0, len(cfg.Policy.ExtraTools) > 0:
		return belljar.KindScript
	}
	return belljar.KindSnippet
}

// selection is Request.Tools: with --tool the list is complete, so that it needs
// the extra ones too.
func (f *runFlags) selection() []string {
	return selection(f.tools, f.extra)
}

func selection(tools, extra []string) []string {
	if tools == nil {
		return nil
	}
	return append(tools[:len(tools):len(tools)], extra...)
}

// wantedTools tells whether a snippet failed because it meant to be a script.
func wantedTools(res *belljar.Result) bool {
	if res.Kind != belljar.KindSnippet || res.ExitCode == nil || *res.ExitCode == 0 {
		return false
	}
	text := strings.TrimSpace(res.Stderr)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return strings.HasPrefix(last, "NameError: name 'tools' is not defined") ||
		strings.HasPrefix(last, "ModuleNotFoundError: No module named 'belljar_tools'")
}
