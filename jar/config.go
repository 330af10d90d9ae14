package jar

import (
	"maps"
	"slices"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/audit"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/engine"
	"github.com/belljar/belljar/internal/output"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/belljar/belljar/internal/toolchain"
	"github.com/belljar/belljar/internal/toolset"
)

// Config is the whole configuration as a belljar.toml has it, one table for each
// part. The zero value is the documented default. Its tables have types of
// Belljar's own inside, so a program fills in fields (cfg.Policy.Deny = ...) rather
// than writing literals of them; for what is usual there are options.
type Config struct {
	Policy     policy.Config             `toml:"policy"`
	Limits     engine.LimitsConfig       `toml:"limits"`
	Sandbox    sandbox.Config            `toml:"sandbox"`
	Workspace  Workspace                 `toml:"workspace"`
	Languages  toolchain.Config          `toml:"languages"`
	MCP        MCP                       `toml:"mcp"`
	MCPServers map[string]toolset.Server `toml:"mcp_servers"`
	Bridge     bridge.Config             `toml:"bridge"`
	Audit      audit.Config              `toml:"audit"`
}

// Workspace is the table [workspace].
type Workspace struct {
	// Path is the folder on which the built-in tools work, read-only. Empty: they
	// are not offered.
	Path string `toml:"path"`
}

// MCP is the table [mcp].
type MCP struct {
	// Config is a file of upstream MCP servers in the usual mcp.json shape.
	Config string `toml:"config"`
}

// toolset gives the part of the configuration that says which tools there are.
func (c Config) toolset(funcs []toolset.Func) toolset.Config {
	return toolset.Config{Workspace: c.Workspace.Path, MCPConfig: c.MCP.Config, Servers: c.MCPServers, Funcs: funcs}
}

// policy lets scripts reach the Go functions: whoever registers one means it to be
// called. A deny list still wins.
func (c Config) policy(funcs []toolset.Func) policy.Config {
	p := c.Policy
	p.ExtraTools = slices.Clone(p.ExtraTools)
	for _, f := range funcs {
		p.ExtraTools = append(p.ExtraTools, f.Tool.Name)
	}
	return p
}

// audit keeps the values that upstream servers are configured with out of the
// journal.
func (c Config) audit() audit.Config {
	a := c.Audit
	a.Secrets = slices.Clone(a.Secrets)
	for _, name := range slices.Sorted(maps.Keys(c.MCPServers)) {
		a.Secrets = slices.AppendSeq(a.Secrets, maps.Values(c.MCPServers[name].Env))
	}
	return a
}

func (c Config) engine() engine.Config {
	return engine.Config{Limits: c.Limits, Minimum: c.Sandbox.Minimum, AuditOptional: !c.Audit.IsRequired()}
}

// check lists what no part finds by itself.
func (c Config) check(languages []string) error {
	if problems := c.Languages.Problems(languages); len(problems) > 0 {
		return belljar.Refuse(belljar.CodeBadConfig, "Correct the configuration.", "%s", output.Sentences(problems))
	}
	return nil
}
