package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/belljar/belljar/internal/config"
	"github.com/belljar/belljar/jar"
)

// TestDocumentedConfiguration: the example of docs/configuration.md is one that
// loads, key by key.
func TestDocumentedConfiguration(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```toml\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/configuration.md has no toml block")
	}
	file := filepath.Join(t.TempDir(), "belljar.toml")
	if err := os.WriteFile(file, found[1], 0o644); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load[jar.Config](config.Options{System: t.TempDir(), Dir: t.TempDir(), File: file})
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded.Config.MCPServers["github"].Command; got != "npx" {
		t.Errorf("mcp_servers.github.command is %q", got)
	}
	if got := loaded.Config.Limits.Script.Memory; got != 512<<20 {
		t.Errorf("limits.script.memory is %v", got)
	}
}
