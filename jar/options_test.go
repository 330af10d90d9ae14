package jar

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/toolchain"
	"github.com/google/go-cmp/cmp"
)

func offeredBy(t *testing.T, opts ...Option) []string {
	t.Helper()
	own := func(context.Context, struct{}) (string, error) { return "", nil }
	j := open(t, append(opts, WithWorkspace(t.TempDir()), WithFunc("own", "Own.", own))...)
	tools, errs := j.Offered(context.Background(), nil, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

func TestToolOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []Option
		want []string
	}{
		{"none", nil, []string{"current_time", "find_files", "list_dir", "own", "read_file", "search_files"}},
		{"only some", []Option{WithTools("list_dir")}, []string{"list_dir", "own"}},
		{"some and more", []Option{WithTools("list_dir"), WithExtraTools("read_file"), WithExtraTools("current_time")}, []string{"current_time", "list_dir", "own", "read_file"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, offeredBy(t, tt.opts...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An option changes the Jar and not the configuration that it was given.
func TestOptionsLeaveTheConfigurationAlone(t *testing.T) {
	cfg := Config{Languages: toolchain.Config{"python": {Interpreter: "/a/python"}}, Policy: policy.Config{ExtraTools: make([]string, 1, 8)}}
	cfg.Policy.ExtraTools[0] = "a"
	j := open(t, WithConfig(cfg), WithPython("/b/python"), WithExtraTools("b"), WithMaxCalls(7))
	if got := cfg.Languages["python"].Interpreter; got != "/a/python" {
		t.Errorf("the interpreter of the configuration became %s", got)
	}
	if got := cfg.Policy.ExtraTools[:2]; got[1] != "" {
		t.Errorf("the extra tools of the configuration became %v", got)
	}
	if got := j.cfg.Languages["python"].Interpreter; got != "/b/python" {
		t.Errorf("the interpreter is %s", got)
	}
	if got := j.MaxCalls(); got != 7 {
		t.Errorf("%d calls", got)
	}
	if got := open(t).MaxCalls(); got != policy.DefaultMaxCalls {
		t.Errorf("%d calls by default", got)
	}
}

func TestUnavailable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"a": {"command": "/no/such/server"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	j := open(t, WithMCPConfig(file), WithWorkspace(t.TempDir()))
	if got := j.Unavailable(context.Background()); len(got) > 0 {
		t.Errorf("before anything needed a server: %v", got)
	}
	if _, errs := j.Tools(context.Background()); len(errs) != 1 {
		t.Errorf("errors %v", errs)
	}
	got := j.Unavailable(context.Background())
	if len(got) != 1 || got[0].State != belljar.CheckFail || !strings.HasPrefix(got[0].Meaning, "MCP server 'a' could not be started: ") {
		t.Errorf("after: %+v", got)
	}
}

func TestLanguageNames(t *testing.T) {
	if diff := cmp.Diff([]string{"python"}, LanguageNames()); diff != "" {
		t.Error(diff)
	}
}
