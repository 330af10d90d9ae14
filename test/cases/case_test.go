package cases

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

//go:embed data/*.json
var data embed.FS

// Case is one file of data. Fields that are not here are unknown to the harness.
type Case struct {
	ID        string            `json:"id"`
	Kind      string            `json:"kind"`
	Title     string            `json:"title"`
	Surface   string            `json:"surface"`
	Lang      string            `json:"lang"`
	As        string            `json:"as"`
	Source    []string          `json:"source"`
	SourceRaw *string           `json:"source_raw"`
	Files     map[string]string `json:"files"`
	Stdin     string            `json:"stdin"`
	StdinGen  *Generated        `json:"stdin_gen"`
	Limits    CaseLimits        `json:"limits"`
	Tools     []string          `json:"tools"`
	Request   *Calls            `json:"request"`
	Steps     []Step            `json:"steps"`
	Expect    Expect            `json:"expect"`

	Note      string   `json:"note"`
	Precedent []string `json:"precedent"`
	Checked   string   `json:"checked"`
}

// Generated is a text written count times.
type Generated struct {
	Repeat string `json:"repeat"`
	Count  int    `json:"count"`
}

// CaseLimits are the limits of a case; zero leaves the engine's own.
type CaseLimits struct {
	TimeoutMS   int64 `json:"timeout_ms"`
	MemoryMB    int64 `json:"memory_mb"`
	DiskMB      int64 `json:"disk_mb"`
	Processes   int64 `json:"processes"`
	OutputBytes int64 `json:"output_bytes"`
}

// Calls are requests of the MCP method tools/call.
type Calls struct {
	Op       string `json:"op"`
	Variants []Call `json:"variants"`
}

// Call is one of them. Name is by default execute_code. With Then
// "notifications/cancelled" the client gives up while the program runs.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Then      string          `json:"then"`
}

// Step is one program of several.
type Step struct {
	Source     string  `json:"source"`
	Background bool    `json:"background"`
	Expect     *Expect `json:"expect"`
}

// kinds lists the families. Each must have cases.
var kinds = []string{
	"escape.fs", "escape.proc", "escape.kernel", "escape.net", "escape.fd",
	"limit.time", "limit.memory", "limit.process", "limit.disk", "limit.output",
	"lifetime", "compile.attack", "result.exit", "text", "stdin", "environment", "runtime.fit", "screening", "artifact",
	"isolation", "bridge", "api", "display", "scale",
}

// load reads one case and says what the harness does not understand in it.
func load(name string, text []byte) (*Case, error) {
	var c Case
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return nil, err
	}
	programs := 0
	for _, has := range []bool{len(c.Source) > 0, c.SourceRaw != nil, len(c.Steps) > 0, c.Request != nil} {
		if has {
			programs++
		}
	}
	switch {
	case c.ID+".json" != name:
		return nil, fmt.Errorf("id %q is not the file's name", c.ID)
	case !slices.Contains(kinds, c.Kind):
		return nil, fmt.Errorf("no such kind %q", c.Kind)
	case !slices.Contains([]string{"run", "cli", "mcp"}, c.Surface):
		return nil, fmt.Errorf("no such surface %q", c.Surface)
	case c.Lang != "python" && c.Lang != "none":
		return nil, fmt.Errorf("language %q", c.Lang)
	case c.As != "" && c.As != "snippet" || c.As != "" && c.Tools != nil:
		return nil, fmt.Errorf("as %q", c.As)
	case programs != 1:
		return nil, fmt.Errorf("%d of source, source_raw, steps and request; want one", programs)
	case c.Request != nil && (c.Request.Op != "tools/call" || c.Surface != "mcp" || len(c.Request.Variants) == 0):
		return nil, fmt.Errorf("request: %+v on surface %s", *c.Request, c.Surface)
	case c.Title == "":
		return nil, fmt.Errorf("no title")
	}
	if c.Request != nil {
		for _, v := range c.Request.Variants {
			if v.Then != "" && v.Then != "notifications/cancelled" {
				return nil, fmt.Errorf("then %q", v.Then)
			}
		}
	}
	for _, tool := range c.Tools {
		if !slices.Contains(offered, tool) {
			return nil, fmt.Errorf("no such tool: %s", tool)
		}
	}
	for _, s := range c.Steps {
		if s.Expect != nil {
			if err := s.Expect.check(); err != nil {
				return nil, fmt.Errorf("step: %w", err)
			}
		}
	}
	return &c, c.Expect.check()
}

// all gives the cases, sorted by id.
func all(t testing.TB) []*Case {
	t.Helper()
	names, err := fs.Glob(data, "data/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d cases: %v", len(names), err)
	}
	var list []*Case
	for _, name := range names {
		text, err := data.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := load(path.Base(name), text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list = append(list, c)
	}
	return list
}

// source is the text of the program.
func (c *Case) source() string {
	if c.SourceRaw != nil {
		return *c.SourceRaw
	}
	return strings.Join(c.Source, "\n") + "\n"
}

func (c *Case) stdin() string {
	if c.StdinGen != nil {
		return strings.Repeat(c.StdinGen.Repeat, c.StdinGen.Count)
	}
	return c.Stdin
}

func TestEveryKindHasCases(t *testing.T) {
	count := map[string]int{}
	ids := map[string]bool{}
	for _, c := range all(t) {
		count[c.Kind]++
		ids[c.ID] = true
	}
	for _, k := range kinds {
		if count[k] < 3 {
			t.Errorf("kind %s has %d cases, want 3 at least", k, count[k])
		}
	}
	listed := slices.Concat(slices.Collect(maps.Keys(known)), slices.Collect(maps.Keys(racy)), slices.Collect(maps.Keys(varies)),
		slices.Collect(maps.Keys(alone)), slices.Collect(maps.Keys(long)))
	for _, id := range listed {
		if !ids[id] {
			t.Errorf("%s is listed, but there is no such case", id)
		}
	}
}

func TestLoadKnowsWhatItDoesNotKnow(t *testing.T) {
	const good = `{"id":"x","kind":"text","title":"t","surface":"run","lang":"python","source":["1"],"expect":{"outcome":"exited"}}`
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	tests := []struct{ name, text, want string }{
		{"good", good, ""},
		{"field", replace(`"source"`, `"extra":1,"source"`), "unknown field"},
		{"expectation", replace(`"outcome":`, `"colour":"red","outcome":`), "unknown field"},
		{"outcome", replace(`"exited"`, `"finished"`), `outcome "finished"`},
		{"must not", replace(`"outcome":"exited"`, `"must_not":["fly"]`), `must_not "fly"`},
		{"after", replace(`"outcome":"exited"`, `"after":"all is well"`), `after "all is well"`},
		{"no expectation", replace(`"outcome":"exited"`, ``), "expects nothing"},
		{"kind", replace(`"text"`, `"texts"`), "no such kind"},
		{"surface", replace(`"run"`, `"http"`), "no such surface"},
		{"language", replace(`"python"`, `"c"`), `language "c"`},
		{"id", replace(`"x"`, `"y"`), "not the file's name"},
		{"two programs", replace(`"source"`, `"source_raw":"1","source"`), "2 of source"},
		{"tool", replace(`"source"`, `"tools":["fly() flies"],"source"`), "no such tool"},
		{"step", replace(`"source":["1"]`, `"steps":[{"source":"1","expect":{"outcome":"well"}}]`), `outcome "well"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load("x.json", []byte(tt.text))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("load: %v, want %q", err, tt.want)
			}
		})
	}
}
