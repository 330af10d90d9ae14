package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belljar/belljar"
)

func TestExample(t *testing.T) {
	tool := func(name string, readOnly bool, required string) belljar.Tool {
		return belljar.Tool{Name: name, Source: "up", ReadOnly: readOnly, InputSchema: json.RawMessage(`{"type":"object","required":` + required + `}`)}
	}
	writes := tool("create_issue", false, `["title"]`)
	for _, tt := range []struct {
		name  string
		tools []belljar.Tool
		call  string // that it shows; "" for none
	}{
		{"only one that writes", []belljar.Tool{writes}, ""},
		{"one that says it reads", []belljar.Tool{writes, tool("get_issue", true, `["id"]`)}, "tools.get_issue(id=w)"},
		{"a curated name goes first", []belljar.Tool{tool("about", true, `["id"]`), tool("fetch_url", false, `["url"]`)}, "tools.fetch_url(url=w)"},
		{"one that needs more than is known", []belljar.Tool{tool("get", true, `["a", "b"]`), tool("one", true, `["c"]`)}, "tools.one(c=w)"},
		{"one that needs nothing", []belljar.Tool{tool("list", true, `[]`)}, ""},
		{"a parameter that is a keyword", []belljar.Tool{tool("get", true, `["from"]`)}, ""},
		{"a parameter that is code", []belljar.Tool{tool("get", true, `["a=1); evil("]`)}, ""},
		{"a schema that is none", []belljar.Tool{{Name: "get", ReadOnly: true, InputSchema: json.RawMessage(`{`)}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(example(tt.tools), "\n")
			if tt.call == "" && strings.Count(got, "tools.") != strings.Count(got, "tools.NAME(arg=value)") {
				t.Errorf("a tool in %q", got)
			}
			if !strings.Contains(got, tt.call) {
				t.Errorf("no %s in %q", tt.call, got)
			}
			if strings.Contains(got, "create_issue") {
				t.Errorf("it writes: %q", got)
			}
		})
	}
}
