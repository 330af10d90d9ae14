package cli

import (
	"context"
	"log/slog"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/audit"
	"github.com/belljar/belljar/internal/mcpserver"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/belljar/belljar/internal/toolchain"
	"github.com/belljar/belljar/internal/toolset"
)

// Config is the whole configuration, composed of the parts' own.
type Config struct {
	Policy    policy.Config  `toml:"policy"`
	Sandbox   sandbox.Config `toml:"sandbox"`
	Workspace struct {
		Path string `toml:"path"`
	} `toml:"workspace"`
	Languages toolchain.Config `toml:"languages"`
	MCP       struct {
		Config string `toml:"config"`
	} `toml:"mcp"`
	MCPServers map[string]toolset.Server `toml:"mcp_servers"`
	Audit      audit.Config              `toml:"audit"`
}

func openJar(ctx context.Context, s *settings, log *slog.Logger) (Engine, error) {
	return nil, belljar.Refuse(belljar.CodeBadRequest, "", "no engine")
}

func records(ctx context.Context, s *settings, f audit.Filter) ([]belljar.Record, error) {
	j, err := audit.Open(s.Config.Audit)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	return j.List(ctx, f)
}

func signature(t belljar.Tool) string { return toolset.Signature(t) }

func (s *settings) describe(opt *mcpserver.Options) {}
