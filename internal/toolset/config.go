package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
	"github.com/belljar/belljar/internal/toolset/upstream"
)

// Config says which tools there are. The zero value has current_time alone.
type Config struct {
	// Workspace is the folder that the built-in file tools read; `path` of the
	// [workspace] table. Empty: they are not offered.
	Workspace string `toml:"-"`
	// MCPConfig is a file in the usual mcp.json shape; `config` of the [mcp]
	// table. Empty: none.
	MCPConfig string `toml:"-"`
	// Servers are further upstream servers by name.
	Servers map[string]Server `toml:"mcp_servers"`
	// Funcs are Go functions offered as tools.
	Funcs []Func `toml:"-"`

	tune func(*upstream.Config) // tests: other timeouts and caps
}

// Server is one upstream MCP server over stdio. In Command, Args, Env and Cwd,
// ${VAR} and ${env:VAR} stand for a variable of our own environment and
// ${VAR:-text} for one that may be missing.
//
// The server's environment is PATH, HOME, LANG, USER and TMPDIR of ours, and Env.
type Server struct {
	Command string            `toml:"command"`
	Args    []string          `toml:"args"`
	Env     map[string]string `toml:"env"`
	// Cwd is the working directory; empty: ours. A relative one in a file is
	// meant from the folder of that file.
	Cwd string `toml:"cwd"`

	base string // the folder of the file it came from
}

// Func is a Go function offered as a tool. Tool needs Name, Description and
// InputSchema; Source, Forms are set by Open. Arguments are checked against the
// schema before Call sees them: a JSON object with the defaults filled in. Call
// runs in many goroutines at once and has to heed its context.
type Func struct {
	Tool belljar.Tool
	Call func(ctx context.Context, args json.RawMessage) (belljar.Value, error)
}

// refuse makes the refusal for a configuration that cannot be meant.
func refuse(hint, reason string, args ...any) error {
	return belljar.Refuse(belljar.CodeBadConfig, hint, reason, args...)
}

// plan turns a configured server into what is started. Its error is for the
// operator and concerns this server alone.
func (s Server) plan(name string, getenv func(string) (string, bool)) (upstream.Config, error) {
	cfg := upstream.Config{Name: name}
	x := expander{getenv: getenv}
	if s.Command == "" {
		return cfg, fmt.Errorf("MCP server %s has no command", plain.Quote(name))
	}
	cfg.Command = x.expand("command", s.Command)
	for _, a := range s.Args {
		cfg.Args = append(cfg.Args, x.expand("args", a))
	}
	cfg.Dir = x.expand("cwd", s.Cwd)
	env := baseEnv(getenv)
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return cfg, fmt.Errorf("MCP server %s: %s is no name of an environment variable", plain.Quote(name), plain.Quote(key))
		}
		env[key] = x.expand("env."+key, s.Env[key])
		cfg.Secrets = append(cfg.Secrets, env[key])
	}
	if x.err != nil {
		return cfg, fmt.Errorf("MCP server %s: %w", plain.Quote(name), x.err)
	}
	cfg.Secrets = append(cfg.Secrets, x.used...)
	if s.base != "" && cfg.Dir != "" && !filepath.IsAbs(cfg.Dir) {
		cfg.Dir = filepath.Join(s.base, cfg.Dir)
	}
	depth, err := nesting(getenv, cfg)
	if err != nil {
		return cfg, fmt.Errorf("MCP server %s %w", plain.Quote(name), err)
	}
	env[depthVar] = strconv.Itoa(depth)
	for _, key := range slices.Sorted(maps.Keys(env)) {
		cfg.Env = append(cfg.Env, key+"="+env[key])
	}
	return cfg, nil
}

// baseEnv is what every server gets of our environment. Credentials of ours are
// not in it.
func baseEnv(getenv func(string) (string, bool)) map[string]string {
	keys := []string{"PATH", "HOME", "LANG", "USER", "TMPDIR"}
	if runtime.GOOS == "windows" {
		keys = append(keys, "APPDATA", "LOCALAPPDATA", "PATHEXT", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE")
	}
	env := map[string]string{}
	for _, k := range keys {
		if v, ok := getenv(k); ok {
			env[k] = v
		}
	}
	return env
}

// depthVar counts Belljars above one another.
const (
	depthVar = "_BELLJAR_DEPTH"
	maxDepth = 3
)

// nesting keeps Belljar from starting itself without end, which the one mcp.json
// of a machine would have it do when it lists Belljar among the rest.
func nesting(getenv func(string) (string, bool), cfg upstream.Config) (int, error) {
	above := 0
	if v, ok := getenv(depthVar); ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			n = maxDepth
		}
		above = n
	}
	if above >= maxDepth {
		return 0, fmt.Errorf("is left out: this Belljar is itself an upstream of an upstream")
	}
	if len(cfg.Args) > 0 && (cfg.Args[0] == "mcp" || cfg.Args[0] == "serve") && isSelf(cfg.Command) {
		return 0, fmt.Errorf("is Belljar itself and is left out")
	}
	return above + 1, nil
}

func isSelf(command string) bool {
	self, err := os.Executable()
	if err != nil {
		return false
	}
	path := command
	if !strings.ContainsRune(command, filepath.Separator) {
		if path = lookPath(command); path == "" {
			return false
		}
	}
	a, err := os.Stat(self)
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

func lookPath(command string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		p := filepath.Join(dir, command)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}
