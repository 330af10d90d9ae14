package jar

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/testkit"
	"github.com/belljar/belljar/internal/toolset"
	"github.com/google/go-cmp/cmp"
)

type pair struct {
	A int    `json:"a" jsonschema:"the first"`
	B int    `json:"b,omitempty"`
	C string `json:"c,omitempty"`
}

func TestGoFunctions(t *testing.T) {
	testkit.Need(t, "python")
	j := open(t,
		WithFunc("add", "Adds.", func(_ context.Context, p pair) (int, error) { return p.A + p.B, nil }),
		WithFunc("same", "Gives back.", func(_ context.Context, p pair) (pair, error) { return p, nil }),
		WithFunc("text", "A text.", func(_ context.Context, p pair) (string, error) { return p.C + "é", nil }),
		WithFunc("raw", "Bytes.", func(_ context.Context, p pair) ([]byte, error) { return []byte{0, 255}, nil }),
		WithFunc("none", "Nothing.", func(_ context.Context, p struct{}) (*pair, error) { return nil, nil }),
		WithFunc("fail", "Fails.", func(_ context.Context, p struct{}) (string, error) { return "", errors.New("out of luck") }),
		WithFunc("refuse", "Fails with a code.", func(_ context.Context, p struct{}) (string, error) {
			return "", &belljar.ToolError{Tool: "refuse", Code: "failed", Reason: "not today"}
		}),
		WithFunc("broken", "Panics.", func(_ context.Context, p struct{}) (string, error) { panic("nil map") }),
		WithFunc("odd", "Answers what is no JSON.", func(_ context.Context, p struct{}) (any, error) { return func() {}, nil }),
	)
	res := j.mustRun(t, &belljar.Request{Source: `
print(tools.add(a=40, b=2), tools.same(a=1, c="x"), tools.text(a=1, c="c"), tools.raw(a=1), tools.none())
for name in ("fail", "refuse", "broken", "odd"):
    try:
        print(name, tools(name))
    except RuntimeError as e:
        print(name, "raised", e)
for args in ({}, {"a": "x"}, {"a": 1, "d": 2}):
    try:
        print(tools.add(**args))
    except RuntimeError as e:
        print("add raised", len(str(e)) > 0)
`})
	want := `42 {'a': 1, 'c': 'x'} cé b'\x00\xff' None
fail raised out of luck
refuse raised not today
broken raised the tool panicked: nil map
odd raised make JSON of the answer: json: unsupported type: func()
add raised True
add raised True
add raised True
`
	if diff := cmp.Diff(want, res.Stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s\nstderr: %s", diff, res.Stderr)
	}
	tools, errs := j.Offered(context.Background(), nil, nil)
	if len(errs) > 0 {
		t.Error(errs)
	}
	var lines []string
	for _, tool := range tools {
		lines = append(lines, toolset.Signature(tool))
	}
	if got := strings.Join(lines, "\n"); !strings.Contains(got, "add(a: int, b: int = None, c: str = None) -> int") {
		t.Errorf("signatures:\n%s", got)
	}
}

func TestFuncWithoutSchema(t *testing.T) {
	_, err := Open(context.Background(), WithFunc("bad", "", func(context.Context, struct{ F func() }) (string, error) { return "", nil }))
	if err == nil || !strings.Contains(err.Error(), "tool bad: its parameters have no JSON schema") {
		t.Errorf("error %v", err)
	}
}

// A deny list wins over a function that is registered.
func TestFuncDenied(t *testing.T) {
	j := open(t, WithConfig(Config{Policy: policy.Config{Deny: []string{"add"}}}),
		WithFunc("add", "Adds.", func(_ context.Context, p pair) (int, error) { return p.A + p.B, nil }))
	tools, _ := j.Offered(context.Background(), nil, nil)
	for _, tool := range tools {
		if tool.Name == "add" {
			t.Error("a denied tool is offered")
		}
	}
	all, _ := j.Tools(context.Background())
	reasons := map[string]string{}
	for _, tool := range all {
		reasons[tool.Name] = j.Decide(tool, nil, nil).Reason
	}
	want := map[string]string{"add": "Blocked by policy: Tool 'add' is disabled by policy.", "current_time": ""}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Error(diff)
	}
}
