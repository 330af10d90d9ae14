package cli

import (
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/config"
	"github.com/belljar/belljar/internal/output"
	"github.com/spf13/pflag"
)

// settingsFlags are the flags of every command that opens a jar.
type settingsFlags struct {
	workspace string
	mcpConfig string
	config    string
	extra     []string
}

func (f *settingsFlags) register(fl *pflag.FlagSet) {
	fl.Var(pathFlag{&f.workspace, "folder"}, "workspace", "folder on which the built-in read-only tools are opened")
	fl.Var(pathFlag{&f.mcpConfig, "file"}, "mcp-config", `file with upstream MCP servers ({"mcpServers": {...}})`)
	fl.Var(pathFlag{&f.config, "file"}, "config", "configuration file")
	fl.Var(namesFlag{&f.extra}, "extra-tool", "tools that scripts may call beside the default set: a,b (repeatable)")
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
		return nil, belljar.Refuse(belljar.CodeBadConfig, "Correct it and call again.", "The configuration cannot be used:\n  %s",
			strings.ReplaceAll(output.Sentences(strings.Split(err.Error(), "\n")), "\n", "\n  "))
	}
	for _, note := range loaded.Notes {
		a.say("%s", note)
	}
	policy := &loaded.Config.Policy
	policy.ExtraTools = append(policy.ExtraTools[:len(policy.ExtraTools):len(policy.ExtraTools)], f.extra...)
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
func (a *app) log() *slog.Logger { return a.logFrom(slog.LevelWarn) }

func (a *app) logFrom(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}
