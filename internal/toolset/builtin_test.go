package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/google/go-cmp/cmp"
)

func workspaceSet(t *testing.T, files map[string]string) *Set {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return openSet(t, Config{Workspace: dir})
}

func openSet(t *testing.T, cfg Config) *Set {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func wantToolErr(t *testing.T, err error, tool, code, part string) {
	t.Helper()
	var te *belljar.ToolError
	if !errors.As(err, &te) || te.Tool != tool || te.Code != code || !strings.Contains(te.Reason, part) {
		t.Errorf("error is %#v, want tool %s, code %s and %q", err, tool, code, part)
	}
}

func TestBuiltinSignatures(t *testing.T) {
	s := workspaceSet(t, nil)
	tools, errs := s.Tools(context.Background())
	if len(errs) > 0 {
		t.Error(errs)
	}
	var got []string
	for _, tool := range tools {
		got = append(got, Signature(tool))
		if !tool.ReadOnly || tool.Source != "builtin" || tool.Forms[0] != tool.Name {
			t.Errorf("%+v", tool)
		}
		for _, schema := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
			var v map[string]any
			if err := json.Unmarshal(schema, &v); err != nil {
				t.Errorf("%s: %v", tool.Name, err)
			}
		}
	}
	want := []string{
		`current_time(timezone: str = "UTC") -> {iso: str, unix: float, timezone: str, utc_offset: str, date: str, time: str, weekday: str}`,
		`find_files(pattern: str, path: str = ".", max_results: int = None) -> list[str]`,
		`list_dir(path: str = ".") -> list[{name: str, type: Literal["file", "folder", "link", "other"], size: int | None}]`,
		`read_file(path: str, start_line: int = 1, max_lines: int = None, max_chars: int = None, errors: Literal["strict", "replace"] = "strict") -> str`,
		`search_files(pattern: str, path: str = ".", glob: str = "**", max_results: int = None, ignore_case: bool = False) -> list[{path: str, line: int, text: str, cut?: bool}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBuiltinCalls(t *testing.T) {
	s := workspaceSet(t, map[string]string{"a.txt": "one <b>\r\ntwo\n", "sub/b.txt": "Two\n", "bad": "x\xff"})
	for _, tc := range []struct {
		tool, args string
		kind       belljar.ValueKind
		want       string
	}{
		{"read_file", `{"path":"a.txt"}`, belljar.ValueText, "one <b>\r\ntwo\n"},
		{"read_file", `{"path":"a.txt","start_line":2,"max_lines":1,"max_chars":2}`, belljar.ValueText, "tw"},
		{"read_file", `{"path":"bad","errors":"replace"}`, belljar.ValueText, "x\uFFFD"},
		{"list_dir", ``, belljar.ValueJSON, `[{"name":"a.txt","type":"file","size":13},{"name":"bad","type":"file","size":2},{"name":"sub","type":"folder","size":null}]`},
		{"list_dir", `{"path":"sub"}`, belljar.ValueJSON, `[{"name":"b.txt","type":"file","size":4}]`},
		{"find_files", `{"pattern":"*.txt"}`, belljar.ValueJSON, `["a.txt","sub/b.txt"]`},
		{"find_files", `{"pattern":"*.txt","max_results":1}`, belljar.ValueJSON, `["a.txt"]`},
		{"find_files", `{"pattern":"*.txt","max_results":null}`, belljar.ValueJSON, `["a.txt","sub/b.txt"]`},
		{"find_files", `{"pattern":"*.txt","max_results":100000}`, belljar.ValueJSON, `["a.txt","sub/b.txt"]`},
		{"find_files", `{"pattern":"*.none"}`, belljar.ValueJSON, `[]`},
		{"search_files", `{"pattern":"o"}`, belljar.ValueJSON, `[{"path":"a.txt","line":1,"text":"one <b>"},{"path":"a.txt","line":2,"text":"two"},{"path":"sub/b.txt","line":1,"text":"Two"}]`},
		{"search_files", `{"pattern":"o","max_results":1}`, belljar.ValueJSON, `[{"path":"a.txt","line":1,"text":"one <b>"}]`},
		{"search_files", `{"pattern":"two","ignore_case":true,"path":"sub","glob":"*.txt"}`, belljar.ValueJSON, `[{"path":"sub/b.txt","line":1,"text":"Two"}]`},
	} {
		t.Run(tc.tool+tc.args, func(t *testing.T) {
			got, err := s.Call(context.Background(), tc.tool, json.RawMessage(tc.args))
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind != tc.kind || string(got.Data) != tc.want {
				t.Errorf("got %d %s, want %d %s", got.Kind, got.Data, tc.kind, tc.want)
			}
		})
	}
	for _, tc := range []struct{ tool, args, code, want string }{
		{"read_file", `{}`, "bad_arguments", "'path' is missing"},
		{"read_file", `{"path":"a.txt","lines":3}`, "bad_arguments", "no parameter 'lines'; the call is read_file(path: str,"},
		{"read_file", `{"path":"absent"}`, "failed", "no 'absent'"},
		{"read_file", `{"path":"bad"}`, "failed", "not UTF-8"},
		{"read_file", `{"path":"../x"}`, "failed", "outside the workspace"},
		{"search_files", `{"pattern":"x","max_results":100001}`, "bad_arguments", "'max_results' must be at most 100000"},
		{"find_files", `{"pattern":"x","max_results":0}`, "bad_arguments", "'max_results' must be at least 1"},
		{"search_files", `{"pattern":"("}`, "failed", "RE2"},
		{"read", `{}`, "unknown_tool", "tool 'read' not available"},
		{"builtin_read_file", `{"path":"a.txt"}`, "unknown_tool", "not available"},
		{"x\x1b[31m", `{}`, "unknown_tool", "tool 'x[31m' not available"},
	} {
		_, err := s.Call(context.Background(), tc.tool, json.RawMessage(tc.args))
		wantToolErr(t, err, tc.tool, tc.code, tc.want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Call(ctx, "list_dir", nil)
	wantToolErr(t, err, "list_dir", "cancelled", "cancel")
}

func TestTell(t *testing.T) {
	now := time.Date(2026, 7, 1, 22, 30, 1, 250e6, time.UTC)
	got, err := tell(now, "UTC")
	want := moment{"2026-07-01T22:30:01Z", 1782945001.25, "UTC", "+00:00", "2026-07-01", "22:30:01", "Wednesday"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, zone := range []string{"", "Local", "local", "../etc/passwd", "/etc/localtime", "Europe/../UTC", "No/Where", "a\x00", strings.Repeat("x", 100)} {
		if got, err := tell(now, zone); err == nil || !strings.Contains(err.Error(), "no time zone") {
			t.Errorf("zone %q: %v, %v", zone, got, err)
		}
	}
	s := openSet(t, Config{})
	v, err := s.Call(context.Background(), "current_time", nil)
	if err != nil {
		t.Fatal(err)
	}
	var m moment
	if err := json.Unmarshal(v.Data, &m); err != nil || m.Timezone != "UTC" || m.Unix < 1.7e9 {
		t.Errorf("%s, %v", v.Data, err)
	}
	tools, _ := s.Tools(context.Background())
	if len(tools) != 1 {
		t.Errorf("without a workspace: %v", tools)
	}
}
