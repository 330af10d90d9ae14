package cli

import (
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/config"
	"github.com/spf13/pflag"
)

// settingsFlags are the flags of every command that opens a jar.
type settingsFlags struct {
	workspace string
	mcpConfig string
	config    string
}

func (f *settingsFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.workspace, "workspace", "", "folder on which the built-in read-only tools are opened")
	fl.StringVar(&f.mcpConfig, "mcp-config", "", `file with upstream MCP servers ({"mcpServers": {...}})`)
	fl.StringVar(&f.config, "config", "", "configuration file")
}

// settings reads the configuration and says on stderr what of it was ignored.
func (a *app) settings(f *settingsFlags) (*settings, error) {
	opt := config.Options{Dir: a.dir, Env: a.env, File: f.config, Flags: map[string]any{}}
	for key, path := range map[string]string{"workspace.path": f.workspace, "mcp.config": f.mcpConfig} {
		if path != "" {
			opt.Flags[key] = a.absolute(path)
		}
	}
	loaded, err := config.Load[Config](opt)
	if err != nil {
		return nil, belljar.Refuse(belljar.CodeBadConfig, "Correct it and call again.", "The configuration cannot be used:\n  %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	for _, note := range loaded.Notes {
		a.say("%s", note)
	}
	return &settings{loaded}, nil
}

// settings are what came of the layers.
type settings struct {
	*config.Loaded[Config]
}

func (a *app) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(a.dir, path)
}

// log writes what a person who looks for a fault wants to read, and no more.
func (a *app) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
