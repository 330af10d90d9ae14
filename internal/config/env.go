package config

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
)

// variables are the environment variables that stand for a key.
var variables = []struct {
	name, key string
	truth     bool // true or false, not text
}{
	{"BELLJAR_WORKSPACE", "workspace.path", false},
	{"BELLJAR_MCP_CONFIG", "mcp.config", false},
	{"BELLJAR_MINIMUM", "sandbox.minimum", false},
	{"BELLJAR_AUDIT_PATH", "audit.path", false},
	{"BELLJAR_AUDIT_REQUIRED", "audit.required", true},
	{"BELLJAR_PYTHON", "languages.python.interpreter", false},
}

// environ keeps the variables that this package looks at. Later ones win, as in
// a shell.
func environ(list []string) map[string]string {
	env := map[string]string{}
	for _, kv := range list {
		name, value, ok := strings.Cut(kv, "=")
		if ok && (strings.HasPrefix(name, "BELLJAR_") || name == "XDG_CONFIG_HOME" || name == "HOME") {
			env[name] = value
		}
	}
	return env
}

// userFolder is the XDG base directory for configuration, "" when the user has
// none. The XDG specification has relative paths ignored.
func userFolder(env map[string]string) string {
	if dir := env["XDG_CONFIG_HOME"]; filepath.IsAbs(dir) {
		return dir
	}
	if home := env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".config")
	}
	return ""
}

// environment lays the variables over the tree. An empty one counts as not set.
func (l *loader) environment(env map[string]string) {
	known := map[string]bool{"BELLJAR_CONFIG": true, "BELLJAR_STATE_DIR": true, "BELLJAR_CI": true}
	for _, v := range variables {
		known[v.name] = true
		text := env[v.name]
		if text == "" {
			continue
		}
		var value any = text
		if v.truth {
			switch text {
			case "true", "1":
				value = true
			case "false", "0":
				value = false
			default:
				l.problems = append(l.problems, fmt.Sprintf("%s: must be true or false, not %q", v.name, text))
				continue
			}
		}
		alone := tree{}
		alone.put(value, strings.Split(v.key, ".")...)
		if err := l.check(alone); err != nil {
			l.problems = append(l.problems, fmt.Sprintf("%s: %s", v.name, wrongValue(err)))
			continue
		}
		l.set(v.key, value, v.name)
	}
	var names []string
	for name, value := range env {
		if strings.HasPrefix(name, "BELLJAR_") && !strings.HasPrefix(name, "BELLJAR_TEST_") && !known[name] && value != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		l.notes = append(l.notes, fmt.Sprintf("The environment variable %s means nothing here and is ignored.", name))
	}
}
