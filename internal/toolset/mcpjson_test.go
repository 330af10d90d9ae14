package toolset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/upstream"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func mcpFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func wantRefusal(t *testing.T, err error, part string) {
	t.Helper()
	var r *belljar.Refusal
	if !errors.As(err, &r) || r.Code != belljar.CodeBadConfig || !strings.Contains(r.Reason, part) || r.Hint == "" {
		t.Errorf("error is %#v, want a refusal with %q", err, part)
	}
}

func TestReadMCPFile(t *testing.T) {
	name := mcpFile(t, `{"$schema":"x","mcpServers":{
		"one":{"command":"npx","args":["-y","x"],"env":{"A":"b"},"cwd":"sub","type":"stdio","autoApprove":[]},
		"off":{"command":"x","disabled":true},
		"http":{"type":"http","url":"https://x"},
		"windsurf":{"serverUrl":"https://x"},
		"sse":{"type":"sse","command":"x"},
		"number":{"command":7},
		"args":{"command":"x","args":"-y"},
		"env":{"command":"x","env":{"PORT":8080}},
		"null":{"command":"x","args":null},
		"list":[],
		"odd":{"command":"x","envFile":".env"}}}`)
	servers, broken, err := readMCPFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Server{"one": {Command: "npx", Args: []string{"-y", "x"}, Env: map[string]string{"A": "b"}, Cwd: "sub", base: filepath.Dir(name)}}
	if diff := cmp.Diff(want, servers, cmp.AllowUnexported(Server{})); diff != "" {
		t.Error(diff)
	}
	for server, part := range map[string]string{
		"http": `reached by "url"`, "windsurf": `reached by "serverUrl"`, "sse": "only stdio", "number": `"command" that is not a string`,
		"args": "list of strings", "env": "object of strings", "null": "list of strings", "list": "not an object", "odd": "unknown key 'envFile'",
	} {
		if err := broken[server]; err == nil || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "'"+server+"'") {
			t.Errorf("%s: %v, want %q", server, err, part)
		}
		delete(broken, server)
	}
	if len(broken) > 0 {
		t.Error(broken)
	}

	servers, _, err = readMCPFile(mcpFile(t, `{"inputs":[],"servers":{"vs":{"type":"stdio","command":"x"}}}`))
	if err != nil || servers["vs"].Command != "x" {
		t.Errorf("VS Code's shape: %v, %v", servers, err)
	}
}

func TestBadMCPFiles(t *testing.T) {
	for text, part := range map[string]string{
		``:                               "is no JSON: line 1",
		"{\n\n  \"mcpServers\": {,}\n}":  "is no JSON: line 3",
		`[]`:                             "no JSON object",
		`{}`:                             `no "mcpServers"`,
		`{"mcpservers":{}}`:              `no "mcpServers"`,
		`{"mcpServers":[]}`:              "object of servers",
		`{"mcpServers":null}`:            "object of servers",
		`{"mcpServers":{},"servers":{}}`: "both",
		strings.Repeat(" ", 2<<20):       "larger than",
	} {
		name := mcpFile(t, text)
		_, err := Open(Config{MCPConfig: name})
		wantRefusal(t, err, part)
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name the file", err)
		}
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, dir, filepath.Join(dir, "absent")} {
		_, err := Open(Config{MCPConfig: name})
		wantRefusal(t, err, "cannot be read")
	}
}

func TestPlan(t *testing.T) {
	env := map[string]string{"PATH": "/bin", "HOME": "/home/u", "TOKEN": "s3cret-value", "EMPTY": "", "AWS_SECRET": "never"}
	getenv := func(k string) (string, bool) { v, ok := env[k]; return v, ok }
	got, err := Server{
		Command: "${HOME}/bin/srv", Args: []string{"--key=${TOKEN}", "$HOME", "${NONE:-x:-y}", "${EMPTY:-e}", "${EMPTY}."},
		Env: map[string]string{"KEY": "Bearer ${env:TOKEN}", "PATH": "/opt"}, Cwd: "sub", base: "/etc/mcp",
	}.plan("s", getenv)
	want := upstream.Config{Name: "s", Command: "/home/u/bin/srv", Args: []string{"--key=s3cret-value", "$HOME", "x:-y", "e", "."}, Dir: "/etc/mcp/sub",
		Env:     []string{"HOME=/home/u", "KEY=Bearer s3cret-value", "PATH=/opt", "_BELLJAR_DEPTH=1"},
		Secrets: []string{"Bearer s3cret-value", "/opt", "/home/u", "s3cret-value", "s3cret-value"}}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, tc := range []struct {
		s    Server
		want string
	}{
		{Server{}, "has no command"},
		{Server{Command: "x", Env: map[string]string{"K": "${MISSING}"}}, "env.K needs the environment variable MISSING"},
		{Server{Command: "x", Args: []string{"${MISSING}"}}, "args needs the environment variable MISSING"},
		{Server{Command: "x", Args: []string{"${input:key}"}}, "'${input:key}' is not understood"},
		{Server{Command: "x", Args: []string{"${workspaceFolder}"}}, "workspaceFolder, which is not set"},
		{Server{Command: "x", Args: []string{"${A"}}, "without its '}'"},
		{Server{Command: "x", Args: []string{"${}"}}, "not understood"},
		{Server{Command: "x", Env: map[string]string{"A=B": ""}}, "no name of an environment variable"},
	} {
		if _, err := tc.s.plan("s", getenv); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "'s'") {
			t.Errorf("%+v: %v, want %q", tc.s, err, tc.want)
		}
	}
}

func TestNoEndlessNesting(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	if _, err := (Server{Command: os.Args[0], Args: []string{"mcp"}}).plan("s", none); err == nil || !strings.Contains(err.Error(), "is Belljar itself") {
		t.Errorf("itself: %v", err)
	}
	for depth, ok := range map[string]bool{"1": true, "2": true, "3": false, "99": false, "x": false, "-1": false} {
		getenv := func(k string) (string, bool) { return depth, k == depthVar }
		if _, err := (Server{Command: "x"}).plan("s", getenv); (err == nil) != ok {
			t.Errorf("at depth %s: %v", depth, err)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("a${B}c${D:-e}$")
	f.Fuzz(func(t *testing.T, s string) {
		x := expander{getenv: func(string) (string, bool) { return "", false }}
		got := x.expand("w", s)
		if x.err == nil && !strings.Contains(s, "${") && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}
