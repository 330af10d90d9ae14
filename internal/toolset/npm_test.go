package toolset

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/testkit"
)

// needNPM returns a server from npm, ready to be configured.
func needNPM(t *testing.T, name string, args ...string) Server {
	t.Helper()
	testkit.Need(t, "node", "npm-peers")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	pkg := filepath.Join(os.Getenv("BELLJAR_TEST_NPM"), "node_modules", "@modelcontextprotocol", name)
	data, err := os.ReadFile(filepath.Join(pkg, "package.json"))
	if err != nil {
		t.Fatalf("BELLJAR_TEST_NPM is set, but the package is not there: %v", err)
	}
	var meta struct {
		Bin map[string]string `json:"bin"`
	}
	if err := json.Unmarshal(data, &meta); err != nil || len(meta.Bin) != 1 {
		t.Fatalf("BELLJAR_TEST_NPM is set, but %s has no program (%v); install it again", pkg, err)
	}
	for _, bin := range meta.Bin {
		args = append([]string{filepath.Join(pkg, bin)}, args...)
	}
	return Server{Command: node, Args: args}
}

func npmSet(t *testing.T, servers map[string]Server) (*Set, []belljar.Tool) {
	t.Helper()
	s := openSet(t, Config{Workspace: t.TempDir(), Servers: servers})
	tools, errs := s.Tools(context.Background())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, tool := range tools {
		sig := Signature(tool)
		t.Log(sig)
		if strings.HasSuffix(sig, "(…)") {
			t.Errorf("%s has an unreadable schema: %s", tool.Name, tool.InputSchema)
		}
	}
	return s, tools
}

func npmCall(t *testing.T, s *Set, tool string, args any) belljar.Value {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Call(context.Background(), tool, data)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return v
}

type m = map[string]any

func TestNPMFilesystem(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	png := "\x89PNG\r\n\x1a\n"
	for name, text := range map[string]string{"a.txt": "one\ntwo\n", "p.png": png} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, tools := npmSet(t, map[string]Server{"fs": needNPM(t, "server-filesystem", dir)})

	if read := find(t, tools, "read_text_file"); !strings.HasPrefix(Signature(read), "read_text_file(path: str, ") || !strings.HasSuffix(Signature(read), ") -> str") {
		t.Errorf("signature %s", Signature(read))
	}
	if got := Signature(find(t, tools, "read_media_file")); got != "read_media_file(path: str)" {
		t.Errorf("signature %s", got) // it says blocks, and a script gets bytes
	}
	// It has a read_file too; the built-in one keeps the name.
	if find(t, tools, "read_file").Source != "builtin" || !slices.Contains(find(t, tools, "fs_read_file").Forms, "read_file") {
		t.Error("the names of the two read_file are mixed up")
	}
	if v := npmCall(t, s, "read_text_file", m{"path": filepath.Join(dir, "a.txt")}); v.Kind != belljar.ValueText || string(v.Data) != "one\ntwo\n" {
		t.Errorf("%d %q", v.Kind, v.Data)
	}
	if v := npmCall(t, s, "fs_read_file", m{"path": filepath.Join(dir, "a.txt"), "head": 1}); string(v.Data) != "one" {
		t.Errorf("%q", v.Data)
	}
	if v := npmCall(t, s, "read_media_file", m{"path": filepath.Join(dir, "p.png")}); v.Kind != belljar.ValueBytes || string(v.Data) != png || v.MediaType != "image/png" {
		t.Errorf("%d %s %q", v.Kind, v.MediaType, v.Data)
	}
	if v := npmCall(t, s, "list_directory", m{"path": dir}); string(v.Data) != "[FILE] a.txt\n[FILE] p.png" {
		t.Errorf("%q", v.Data)
	}
	_, err = s.Call(context.Background(), "read_text_file", json.RawMessage(`{"path":"/etc/passwd"}`))
	wantToolErr(t, err, "read_text_file", "failed", "outside allowed directories")
	_, err = s.Call(context.Background(), "read_text_file", json.RawMessage(`{}`))
	wantToolErr(t, err, "read_text_file", "failed", "path")
}

func TestNPMMemory(t *testing.T) {
	srv := needNPM(t, "server-memory")
	srv.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	s, tools := npmSet(t, map[string]Server{"memory": srv})
	if got := Signature(find(t, tools, "add_observations")); got != "add_observations(observations: list[{entityName: str, contents: list[str]}]) -> {results: list[{entityName: str, addedObservations: list[str]}]}" {
		t.Errorf("signature %s", got)
	}
	npmCall(t, s, "create_entities", m{"entities": []m{{"name": "Ada", "entityType": "person", "observations": []string{"wrote <notes> é"}}}})
	v := npmCall(t, s, "search_nodes", m{"query": "notes"})
	var graph struct {
		Entities []struct {
			Name         string   `json:"name"`
			Observations []string `json:"observations"`
		} `json:"entities"`
	}
	if v.Kind != belljar.ValueJSON || json.Unmarshal(v.Data, &graph) != nil || len(graph.Entities) != 1 || graph.Entities[0].Name != "Ada" || graph.Entities[0].Observations[0] != "wrote <notes> é" {
		t.Errorf("%d %s", v.Kind, v.Data)
	}
}

func TestNPMEverything(t *testing.T) {
	s, tools := npmSet(t, map[string]Server{"everything": needNPM(t, "server-everything")})
	if v := npmCall(t, s, "echo", m{"message": "hé"}); v.Kind != belljar.ValueText || string(v.Data) != "Echo: hé" {
		t.Errorf("%d %q", v.Kind, v.Data)
	}
	for _, tool := range tools {
		switch {
		case slices.Contains(tool.Forms, "get-sum"):
			if v := npmCall(t, s, tool.Name, m{"a": 2, "b": 3}); !strings.Contains(string(v.Data), "5") {
				t.Errorf("%q", v.Data)
			}
		case slices.Contains(tool.Forms, "get-structured-content"):
			v := npmCall(t, s, tool.Name, m{"location": "Chicago"})
			var weather map[string]any
			if v.Kind != belljar.ValueJSON || json.Unmarshal(v.Data, &weather) != nil || weather["conditions"] == nil {
				t.Errorf("%d %s", v.Kind, v.Data)
			}
		case slices.Contains(tool.Forms, "get-tiny-image"):
			v := npmCall(t, s, tool.Name, m{})
			var mixed []any
			if v.Kind != belljar.ValueJSON || json.Unmarshal(v.Data, &mixed) != nil || len(mixed) < 2 {
				t.Errorf("%d %.200s", v.Kind, v.Data)
			}
		case slices.Contains(tool.Forms, "get-resource-links"):
			if v := npmCall(t, s, tool.Name, m{"count": 2}); v.Kind != belljar.ValueJSON || !strings.Contains(string(v.Data), `"resource_link"`) {
				t.Errorf("%d %.200s", v.Kind, v.Data)
			}
		}
	}
	for _, name := range []string{"get_sum", "get_structured_content", "get_tiny_image", "get_resource_links"} {
		find(t, tools, name)
	}
}
