package cli

import (
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset"
	"github.com/google/go-cmp/cmp"
)

// Whatever opens tools makes a program a script.
func TestKind(t *testing.T) {
	with := func(change func(*Config)) *Config {
		var cfg Config
		change(&cfg)
		return &cfg
	}
	for _, tt := range []struct {
		name string
		f    runFlags
		cfg  *Config
		want belljar.Kind
	}{
		{"nothing", runFlags{}, &Config{}, belljar.KindSnippet},
		{"workspace", runFlags{}, with(func(c *Config) { c.Workspace.Path = "/w" }), belljar.KindScript},
		{"mcp.json", runFlags{}, with(func(c *Config) { c.MCP.Config = "/m" }), belljar.KindScript},
		{"servers", runFlags{}, with(func(c *Config) { c.MCPServers = map[string]toolset.Server{"a": {}} }), belljar.KindScript},
		{"extra tools", runFlags{}, with(func(c *Config) { c.Policy.ExtraTools = []string{"a"} }), belljar.KindScript},
		{"a denied tool opens nothing", runFlags{}, with(func(c *Config) { c.Policy.Deny = []string{"a"} }), belljar.KindSnippet},
		{"the flag wins", runFlags{snippet: true}, with(func(c *Config) { c.Workspace.Path = "/w" }), belljar.KindSnippet},
		{"script", runFlags{script: true}, &Config{}, belljar.KindScript},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.f.kind(tt.cfg); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// The tools that the server's command line names hold for every run, and the
// request of the client is not changed.
func TestServerChoosesTools(t *testing.T) {
	for _, tt := range []struct {
		name         string
		tools, extra []string
		want         []string
	}{
		{"none named", nil, []string{"x"}, nil},
		{"named", []string{"a"}, []string{"x"}, []string{"a", "x"}},
		{"no tool", []string{}, nil, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			engine := &fakeEngine{}
			req := &belljar.Request{Source: "1"}
			if _, err := (choosing{engine, selection(tt.tools, tt.extra)}).Run(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, engine.asked.Tools); diff != "" {
				t.Error(diff)
			}
			if req.Tools != nil {
				t.Error("the request was changed")
			}
		})
	}
}
