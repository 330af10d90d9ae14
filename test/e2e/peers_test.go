package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belljar/belljar/internal/testkit"
)

// TestPeers lets a script call three real MCP servers at once, as the usual
// mcp.json names them.
func TestPeers(t *testing.T) {
	testkit.Need(t, "userns", "python", "npm-peers")
	testkit.LeakCheck(t)
	dir, env := workspace(t)
	type server struct {
		Command string            `json:"command"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
	}
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]server{
		"files":      {Command: testkit.PeerBin("mcp-server-filesystem"), Args: []string{dir}},
		"memory":     {Command: testkit.PeerBin("mcp-server-memory"), Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}},
		"everything": {Command: testkit.PeerBin("mcp-server-everything")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	script := `
print(tools.echo(message="hello"))
print(tools.read_text_file(path="` + filepath.Join(dir, "a.txt") + `").split())
tools.create_entities(entities=[{"name": "Ada", "entityType": "person", "observations": ["counts"]}])
graph = tools.read_graph()
print([e["name"] for e in graph["entities"]])
try:
    tools.read_text_file(path="/etc/passwd")
except tools.ToolError as e:
    print("refused:", "denied" in str(e).lower())
`
	for name, text := range map[string]string{"mcp.json": string(servers), "script.py": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	for _, tool := range []string{"echo", "read_text_file", "create_entities", "read_graph"} {
		args = append(args, "--tool", tool)
	}
	args = append([]string{"run", "--mcp-config", filepath.Join(dir, "mcp.json")}, append(args, filepath.Join(dir, "script.py"))...)
	cmd := exec.CommandContext(t.Context(), "belljar", args...)
	cmd.Env = env
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &log)
	}
	want := "Echo: hello\n['alpha', 'beta']\n['Ada']\nrefused: True\n"
	if string(out) != want {
		t.Errorf("stdout %q, want %q\n%s", out, want, &log)
	}
	if !strings.Contains(log.String(), "5 tool calls") {
		t.Errorf("stderr %q", &log)
	}
}
