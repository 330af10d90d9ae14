package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

// span stands for the types with a text form that the parts use.
type span time.Duration

func (s *span) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is no duration; write for example 30s", b)
	}
	*s = span(d)
	return nil
}

type limits struct {
	Timeout   span   `toml:"timeout"`
	Memory    string `toml:"memory"`
	Processes int64  `toml:"processes"`
}

// sample has the shapes that the real configuration has.
type sample struct {
	Policy struct {
		Tools          []string `toml:"tools"`
		ExtraTools     []string `toml:"extra_tools"`
		Deny           []string `toml:"deny"`
		MaxCallsPerRun int      `toml:"max_calls_per_run"`
	} `toml:"policy"`
	Limits  map[string]limits `toml:"limits"`
	Sandbox struct {
		Minimum string `toml:"minimum"`
	} `toml:"sandbox"`
	Workspace struct {
		Path string `toml:"path"`
	} `toml:"workspace"`
	MCP struct {
		Config string `toml:"config"`
	} `toml:"mcp"`
	Audit struct {
		Path     string `toml:"path"`
		Required *bool  `toml:"required"`
	} `toml:"audit"`
	Servers map[string]struct {
		Command string   `toml:"command"`
		Args    []string `toml:"args"`
	} `toml:"mcp_servers"`
}

// place is a machine with nothing but the files given: "system", "user", "local"
// and "named" stand for the four places.
func place(t *testing.T, files map[string]string) Options {
	t.Helper()
	dir := t.TempDir()
	opt := Options{System: filepath.Join(dir, "etc"), Dir: filepath.Join(dir, "work"), Env: []string{"HOME=" + filepath.Join(dir, "home")}}
	paths := map[string]string{
		"system": filepath.Join(opt.System, FileName),
		"user":   filepath.Join(dir, "home", ".config", "belljar", FileName),
		"local":  filepath.Join(opt.Dir, FileName),
		"named":  filepath.Join(dir, "mine.toml"),
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(paths[name]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(paths[name], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if name == "named" {
			opt.File = paths[name]
		}
	}
	return opt
}

func load(t *testing.T, opt Options) *Loaded[sample] {
	t.Helper()
	l, err := Load[sample](opt)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLayers(t *testing.T) {
	opt := place(t, map[string]string{
		"system": "[policy]\ndeny = [\"a\"]\nmax_calls_per_run = 10\n[limits.script]\ntimeout = \"10s\"\nmemory = \"1GiB\"\n[mcp_servers.one]\ncommand = \"x\"\n",
		"user":   "[policy]\ndeny = [\"b\", \"c\"]\n[limits.script]\ntimeout = \"20s\"\n[mcp_servers.two]\ncommand = \"y\"\n",
		"named":  "[workspace]\npath = \"/w1\"\n[mcp_servers.one]\nargs = [\"z\"]\n",
	})
	opt.Env = append(opt.Env, "BELLJAR_WORKSPACE=/w2", "BELLJAR_MINIMUM=gvisor", "BELLJAR_AUDIT_REQUIRED=false")
	opt.Flags = map[string]any{"workspace.path": "/w3"}
	l := load(t, opt)
	c := l.Config
	if diff := cmp.Diff([]string{"b", "c"}, c.Policy.Deny); diff != "" {
		t.Errorf("a list is replaced: %s", diff)
	}
	if c.Policy.MaxCallsPerRun != 10 || c.Limits["script"].Memory != "1GiB" || time.Duration(c.Limits["script"].Timeout) != 20*time.Second {
		t.Errorf("keys are not laid one by one: %+v", c)
	}
	if c.Servers["one"].Command != "x" || len(c.Servers["one"].Args) != 1 || c.Servers["two"].Command != "y" {
		t.Errorf("tables are not joined: %+v", c.Servers)
	}
	if c.Workspace.Path != "/w3" || c.Sandbox.Minimum != "gvisor" || c.Audit.Required == nil || *c.Audit.Required {
		t.Errorf("environment and flags: %+v", c)
	}
	for key, want := range map[string]string{
		"workspace.path":         "flag",
		"sandbox.minimum":        "BELLJAR_MINIMUM",
		"limits.script.timeout":  filepath.Join(opt.Env[0][5:], ".config/belljar/belljar.toml:4"),
		"limits.script.memory":   filepath.Join(opt.System, "belljar.toml:6"),
		"policy.tools":           "default",
		"mcp_servers.one.args":   opt.File + ":4",
		"policy.deny":            filepath.Join(opt.Env[0][5:], ".config/belljar/belljar.toml:2"),
		"limits.script.no_such_": "default",
	} {
		if got := l.Origin(key); got != want {
			t.Errorf("origin of %s: %s, want %s", key, got, want)
		}
	}
	if len(l.Files) != 3 || len(l.Notes) != 0 {
		t.Errorf("files %v, notes %v", l.Files, l.Notes)
	}
}

func TestLocate(t *testing.T) {
	opt := place(t, map[string]string{"named": "[policy]\ntools = [\"a\"]\n"})
	opt.Flags = map[string]any{"workspace.path": "/w"}
	l := load(t, opt)
	at := opt.File + ":2: "
	tests := []struct{ name, in, want string }{
		{"at the start", "policy.tools: bad", at + "policy.tools: bad"},
		{"inside", "It cannot be used: policy.tools: a; policy.tools: b; workspace.path: c.", "It cannot be used: " + at + "policy.tools: a; " + at + "policy.tools: b; flag: workspace.path: c."},
		{"not set", "policy.deny: bad", "policy.deny: bad"},
		{"part of a longer key", "xpolicy.tools: bad", "xpolicy.tools: bad"},
		{"no key", "policy.tools are bad", "policy.tools are bad"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := l.Locate(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNothingConfigured(t *testing.T) {
	l := load(t, Options{System: t.TempDir(), Dir: t.TempDir()})
	if diff := cmp.Diff(sample{}, l.Config); diff != "" || len(l.Files)+len(l.Notes) != 0 {
		t.Errorf("%s %v %v", diff, l.Files, l.Notes)
	}
}

func TestVariableForTheFile(t *testing.T) {
	opt := place(t, map[string]string{"named": "[workspace]\npath = \"/w\"\n"})
	opt.Env, opt.File = append(opt.Env, "BELLJAR_CONFIG="+opt.File), ""
	if got := load(t, opt).Config.Workspace.Path; got != "/w" {
		t.Errorf("path %q", got)
	}
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		env   []string
		want  []string // each a part of one problem, in order
	}{
		{"syntax", map[string]string{"user": "[policy\n"}, nil, []string{"belljar.toml:2: expected"}},
		{"every problem of every file", map[string]string{
			"system": "[policy]\ndenny = []\n\n[sandbox]\nminimum = 5\n",
			"named":  "[limits.script]\ntimeout = \"soon\"\nmemory = true\n\n[nothing]\nx = 1\ny = 2\n",
		}, nil, []string{
			`etc/belljar.toml:2: unknown key policy.denny; did you mean policy.deny?`,
			`etc/belljar.toml:5: sandbox.minimum: must be a text, not a whole number`,
			`mine.toml:2: limits.script.timeout: "soon" is no duration; write for example 30s`,
			`mine.toml:3: limits.script.memory: must be a text, not true or false`,
			`mine.toml:5: unknown key nothing`,
		}},
		{"a table where a value belongs", map[string]string{"user": "[policy.deny]\nx = 1\n"}, nil, []string{"policy.deny: must be a list, not a table"}},
		{"a value where a table belongs", map[string]string{"user": "policy = 5\n"}, nil, []string{"belljar.toml:1: policy: must be a table, not a whole number"}},
		{"an empty file", map[string]string{"named": ""}, nil, nil},
		{"variable", nil, []string{"BELLJAR_AUDIT_REQUIRED=perhaps"}, []string{`BELLJAR_AUDIT_REQUIRED: must be true or false, not "perhaps"`}},
		{"missing file of a variable", nil, []string{"BELLJAR_CONFIG=/no/such/file"}, []string{"/no/such/file: cannot be read: no such file"}},
		{"the local file too", map[string]string{"local": "[policy]\nfoo = 1\n"}, nil, []string{"work/belljar.toml:2: unknown key policy.foo"}},
		{"quoted and dotted keys", map[string]string{"user": "mcp_servers.\"a.b\".comand = \"x\"\n"}, nil, []string{`belljar.toml:1: unknown key mcp_servers."a.b".comand`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := place(t, tt.files)
			opt.Env = append(opt.Env, tt.env...)
			_, err := Load[sample](opt)
			var got Problems
			if err != nil {
				got = err.(Problems)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %d problems, want %d:\n%v", len(got), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("problem %d: %q, want %q", i, got[i], want)
				}
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	opt := place(t, nil)
	opt.File = opt.System
	if err := os.Mkdir(opt.System, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Load[sample](opt); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder as the file: %v", err)
	}
}

func TestUnknownVariable(t *testing.T) {
	opt := place(t, nil)
	opt.Env = append(opt.Env, "BELLJAR_MINIMUN=gvisor", "BELLJAR_TEST_NPM=x", "BELLJAR_CI=all", "BELLJAR_OTHER=")
	l := load(t, opt)
	if len(l.Notes) != 1 || !strings.Contains(l.Notes[0], "BELLJAR_MINIMUN means nothing") {
		t.Errorf("notes %q", l.Notes)
	}
}

func TestNearest(t *testing.T) {
	list := []string{"claude-code", "claude-desktop", "cursor", "vscode", "windsurf"}
	for word, want := range map[string]string{"claude": "claude-code", "curser": "cursor", "VSCode": "vscode", "emacs": "", "windsruf": "windsurf", "vsocde": "vscode"} {
		got := Nearest(word, list)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("Nearest(%q) = %v, want %q", word, got, want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("[policy]\ndeny = [\"a\"]\n")
	f.Add("[limits.script]\ntimeout = \"x\"\na.b.c = 5\n[[x]]\n")
	f.Add("policy.tools = [1, \"a\", {b = 2}]\n[sandbox]\nminimum = \"gvisor\"")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// As a file of its own it loads exactly when the library and the struct agree
		// with it; as a stranger's it never widens.
		var direct sample
		meta, want := toml.Decode(text, &direct)
		ok := want == nil && len(meta.Undecoded()) == 0
		_, err := Load[sample](Options{System: dir, Dir: t.TempDir()})
		if (err == nil) != ok {
			t.Errorf("load %v, decode %v %v", err, want, meta.Undecoded())
		}
		l, err := Load[sample](Options{System: t.TempDir(), Dir: dir})
		if err != nil {
			return
		}
		c := l.Config
		if c.Workspace.Path != "" || c.MCP.Config != "" || c.Audit.Path != "" || len(c.Servers) > 0 || len(c.Policy.ExtraTools) > 0 {
			t.Errorf("a stranger's file opened something: %+v", c)
		}
		for _, name := range c.Policy.Tools {
			found := false
			for _, known := range curated {
				found = found || sameName(name, known)
			}
			if !found {
				t.Errorf("a stranger's file added the tool %q", name)
			}
		}
	})
}
