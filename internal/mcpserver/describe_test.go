package mcpserver

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it anew):\n%s", path, diff)
	}
}

func TestDescription(t *testing.T) {
	builtin := []belljar.Tool{
		{Name: "search_files", Source: "builtin", Description: "Searches files."},
		{Name: "read_file", Source: "builtin", Description: strings.Repeat("Reads ", 30) + "\nsecond line"},
		{Name: "odd", Source: "up", Description: "Hides\ra\x1b[2Jline\u2028of its own"},
	}
	py := []string{"python"}
	tests := []struct {
		name  string
		opt   Options
		tools []belljar.Tool
		langs []string
	}{
		{"none", Options{}, nil, py},
		{"builtin", Options{Signature: signature, Timeout: 30 * time.Second, MaxTimeout: 2 * time.Minute}, builtin, py},
		{"bare names", Options{MaxCalls: 50}, someTools(2), []string{"python", "javascript"}},
		{"exactly 25", Options{Signature: signature}, someTools(25), py},
		{"26", Options{Signature: signature}, someTools(26), py},
		{"40", Options{Signature: signature}, someTools(40), py},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := New(tt.opt).describe(tt.tools, tt.langs)
			golden(t, "description-"+strings.ReplaceAll(tt.name, " ", "-")+".txt", got+"\n")
			_, list, _ := strings.Cut(got, "raises tools.ToolError.\n")
			if n := strings.Count(list, "  # "); n != min(len(tt.tools), maxToolLines) {
				t.Errorf("%d signatures for %d tools", n, len(tt.tools))
			}
			for _, tool := range tt.tools {
				if !strings.Contains(list, tool.Name) {
					t.Errorf("%s is not named", tool.Name)
				}
			}
		})
	}
}

func TestDescriptionIsSorted(t *testing.T) {
	tools := someTools(3)
	tools[0], tools[2] = tools[2], tools[0]
	s := New(Options{})
	if s.describe(tools, nil) != s.describe(someTools(3), nil) {
		t.Error("the order of the toolset shows")
	}
	if tools[0].Name != "tool_02" {
		t.Error("the caller's slice was sorted")
	}
}

func TestSummary(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"first line", "One.\nTwo.", "One."},
		{"leading blank lines", "\n\n  One.\n", "One."},
		{"none", " \n", ""},
		{"exactly 110", strings.Repeat("é", 110), strings.Repeat("é", 110)},
		{"111", strings.Repeat("é", 111), strings.Repeat("é", 109) + "…"},
		{"controls", "a\x1b[31mb\u0085c\td", "a [31mb c d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := summary(tt.in)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if utf8.RuneCountInString(got) > maxToolSummary {
				t.Errorf("%d characters", utf8.RuneCountInString(got))
			}
		})
	}
}

func TestAnnotations(t *testing.T) {
	s := New(Options{})
	for _, tt := range []struct {
		name    string
		tools   []belljar.Tool
		reaches bool
	}{{"isolated", nil, false}, {"with tools", someTools(1), true}} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.tool(tt.tools, nil).Annotations
			if a.ReadOnlyHint || a.IdempotentHint || *a.DestructiveHint != tt.reaches || *a.OpenWorldHint != tt.reaches {
				t.Errorf("%+v destructive %v open %v", a, *a.DestructiveHint, *a.OpenWorldHint)
			}
		})
	}
}
