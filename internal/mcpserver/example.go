package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/policy"
)

// example is a few lines that do no harm with the tools there are: models copy
// them. So the tool in it is one that reads, and no value is invented for it.
func example(tools []belljar.Tool) []string {
	if len(tools) == 0 {
		return []string{"squares = [n * n for n in range(1000)]", "print(sum(squares))"}
	}
	for _, t := range tools {
		if t.Name == "search_files" && t.Source == "builtin" {
			return []string{`hits = tools.search_files(pattern="deprecated")`, `print(len(hits), sorted({h["path"] for h in hits})[:10])`}
		}
	}
	const show = "print(len(answers), str(answers)[:500])"
	for _, t := range reading(tools) {
		if name, ok := onlyParam(t.InputSchema); ok {
			return []string{"wanted = []  # the values to ask for", fmt.Sprintf("answers = [tools.%s(%s=w) for w in wanted]", t.Name, name), show}
		}
	}
	return []string{"answers = []", "# for each thing to know: answers.append(tools.NAME(arg=value))", show}
}

// reading are the tools that change nothing: those of the curated set, which is
// made of such, and those whose source says so.
func reading(tools []belljar.Tool) []belljar.Tool {
	var curated []belljar.Tool
	if p, err := policy.New(policy.Config{}); err == nil {
		curated = p.Offered(tools, nil, nil)
	}
	var more []belljar.Tool
	for _, t := range tools {
		if t.ReadOnly && !slices.ContainsFunc(curated, func(c belljar.Tool) bool { return c.Name == t.Name }) {
			more = append(more, t)
		}
	}
	return append(curated, more...)
}

// onlyParam gives the one parameter that a call needs, when it needs exactly one.
func onlyParam(schema json.RawMessage) (string, bool) {
	var s struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Required) != 1 {
		return "", false
	}
	name := s.Required[0]
	return name, word(name)
}

// word tells whether a name can stand before = in a call in Python. It comes from
// an upstream.
func word(name string) bool {
	if name == "" || len(name) > 60 || slices.Contains(keywords, name) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0 && (name[0] < '0' || name[0] > '9')
}

var keywords = []string{
	"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
	"except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
	"return", "try", "while", "with", "yield",
}
