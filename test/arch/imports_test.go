package arch

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/belljar/belljar"

// layers is the layer table: a package imports only packages of lower layers.
// A path ending in /... stands for the package and everything beneath it.
var layers = []struct {
	layer string
	paths []string
}{
	{"0", []string{""}},
	{"1", []string{
		"internal/policy", "internal/screen", "internal/language", "internal/sandbox/...", "internal/output",
		"internal/bridge", "internal/toolset/...", "internal/audit", "internal/store", "internal/telemetry",
	}},
	{"2", []string{"internal/toolchain", "internal/session"}},
	{"3", []string{"internal/engine", "internal/cluster"}},
	{"3a", []string{"jar"}},
	{"4", []string{"internal/mcpserver", "internal/httpapi", "internal/selftest", "internal/bench"}},
	{"5", []string{"internal/cli", "internal/config"}},
	{"6", []string{"cmd/..."}},
}

// beside are packages that are no part of the layers, and what they may import
// of this module.
var beside = map[string][]string{
	"languages":        {},             // embedded data
	"schema":           {},             // generated data
	"web":              {},             // embedded data
	"client":           {""},           // of the HTTP API: the words only
	"internal/testkit": {},             // for tests
	"test":             {"everything"}, // whole-program tests
	"examples":         {"", "jar"},    // what a user of the library has
}

// exceptions are the imports allowed inside one layer.
var exceptions = map[[2]string]string{
	{"internal/screen", "internal/language"}: "screening looks at the language registry",
	{"internal/cli", "internal/config"}:      "the command line is what loads the configuration",
}

// data may be imported from everywhere: it holds no code beyond an embed line.
var data = []string{"languages", "schema", "web"}

// an edge is one import, seen in one file.
type edge struct {
	from, to string // package folders relative to the module, "" is the root
	file     string
}

func layerOf(pkg string) (rank int, name string, ok bool) {
	for i, l := range layers {
		for _, p := range l.paths {
			base, tree := strings.CutSuffix(p, "/...")
			if pkg == base || tree && strings.HasPrefix(pkg, base+"/") {
				return i, l.layer, true
			}
		}
	}
	return 0, "", false
}

func besideOf(pkg string) (string, bool) {
	for name := range beside {
		if pkg == name || strings.HasPrefix(pkg, name+"/") {
			return name, true
		}
	}
	return "", false
}

// judge says what is wrong with an import, or "".
func judge(e edge) string {
	if top, ok := besideOf(e.to); ok && slices.Contains(data, top) {
		return ""
	}
	if top, ok := besideOf(e.from); ok {
		may := beside[top]
		own := e.to == top || strings.HasPrefix(e.to, top+"/")
		if own || slices.Contains(may, e.to) || slices.Contains(may, "everything") {
			return ""
		}
		return fmt.Sprintf("%s stands beside the layers and may import %q of this module only", top, may)
	}
	from, fromName, ok := layerOf(e.from)
	if !ok {
		return fmt.Sprintf("package %s has no place in the layer table of test/arch", e.from)
	}
	to, toName, ok := layerOf(e.to)
	if !ok {
		return fmt.Sprintf("package %s has no place in the layer table of test/arch, or is for tests", e.to)
	}
	if to < from || exceptions[[2]string{e.from, e.to}] != "" {
		return ""
	}
	if inTree("internal/sandbox", e) || inTree("internal/toolset", e) { // parts of one concern
		return ""
	}
	if to == from {
		return fmt.Sprintf("both are in layer %s: let %s declare a small interface and have it passed in", fromName, e.from)
	}
	return fmt.Sprintf("layer %s may not look up at layer %s: declare a small interface below and pass the implementation in", fromName, toName)
}

func inTree(tree string, e edge) bool {
	in := func(p string) bool { return p == tree || strings.HasPrefix(p, tree+"/") }
	return in(e.from) && in(e.to)
}

func TestImportRule(t *testing.T) {
	edges := imports(t)
	if len(edges) == 0 {
		t.Fatal("found no import at all: is the module's folder the right one?")
	}
	for _, e := range edges {
		if why := judge(e); why != "" {
			t.Errorf("%s\n  chain: %s\n  file:  %s", why, strings.Join(chain(edges, e), " -> "), e.file)
		}
	}
}

// TestJudge shows that the rule bites.
func TestJudge(t *testing.T) {
	tests := []struct {
		name, from, to string
		wrong          bool
	}{
		{"words from anywhere", "internal/policy", "", false},
		{"downwards", "internal/engine", "internal/policy", false},
		{"upwards", "internal/policy", "internal/engine", true},
		{"neighbours in layer 1", "internal/policy", "internal/audit", true},
		{"screen sees language", "internal/screen", "internal/language", false},
		{"language does not see screen", "internal/language", "internal/screen", true},
		{"sandbox and its parts", "internal/sandbox", "internal/sandbox/seccomp", false},
		{"a part of sandbox from a neighbour", "internal/bridge", "internal/sandbox/seccomp", true},
		{"a part of sandbox from above", "internal/engine", "internal/sandbox/seccomp", false},
		{"the engine does not see jar", "internal/engine", "jar", true},
		{"surfaces do not see each other", "internal/mcpserver", "internal/httpapi", true},
		{"surfaces see jar", "internal/mcpserver", "jar", false},
		{"cli sees config", "internal/cli", "internal/config", false},
		{"config does not see cli", "internal/config", "internal/cli", true},
		{"jar does not see config", "jar", "internal/config", true},
		{"main sees cli", "cmd/belljar", "internal/cli", false},
		{"data from everywhere", "internal/language", "languages", false},
		{"testkit is for tests", "internal/engine", "internal/testkit", true},
		{"the client knows words alone", "client", "jar", true},
		{"examples use the library", "examples/go", "jar", false},
		{"an unknown package", "internal/utils", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			why := judge(edge{from: tt.from, to: tt.to})
			if (why != "") != tt.wrong {
				t.Errorf("%s -> %s: %q", tt.from, tt.to, why)
			}
		})
	}
}

// TestRootImportsStdOnly: the words depend on nothing, so that everything may
// depend on them.
func TestRootImportsStdOnly(t *testing.T) {
	each(t, func(file string, src []byte) {
		if strings.Contains(file, "/") || !strings.HasSuffix(file, ".go") || file == "deps_keep.go" || strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, imp := range importsOf(t, file, src) {
			if strings.Contains(imp, ".") {
				t.Errorf("%s imports %s; the root package imports the standard library only", file, imp)
			}
		}
	})
}

// imports lists the imports within the module, of files that are no tests.
func imports(t *testing.T) []edge {
	var edges []edge
	each(t, func(file string, src []byte) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return
		}
		from := path.Dir(file)
		if from == "." {
			from = ""
		}
		for _, imp := range importsOf(t, file, src) {
			if to, ok := strings.CutPrefix(imp, module); ok && (to == "" || to[0] == '/') {
				edges = append(edges, edge{from, strings.TrimPrefix(to, "/"), file})
			}
		}
	})
	sort.Slice(edges, func(i, j int) bool { return edges[i].file < edges[j].file })
	return edges
}

func importsOf(t *testing.T, file string, src []byte) []string {
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// chain is a shortest way from a program to the offending import: it shows who
// drags it in.
func chain(edges []edge, bad edge) []string {
	show := func(p string) string {
		if p == "" {
			return "belljar"
		}
		return p
	}
	type step struct {
		pkg  string
		path []string
	}
	seen := map[string]bool{}
	queue := []step{}
	for _, e := range edges {
		if strings.HasPrefix(e.from, "cmd/") && !seen[e.from] {
			seen[e.from] = true
			queue = append(queue, step{e.from, []string{show(e.from)}})
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s.pkg == bad.from {
			return append(s.path, show(bad.to))
		}
		for _, e := range edges {
			if e.from == s.pkg && !seen[e.to] {
				seen[e.to] = true
				queue = append(queue, step{e.to, append(slices.Clone(s.path), show(e.to))})
			}
		}
	}
	return []string{show(bad.from), show(bad.to)}
}

// each calls f with every tracked-looking file of the module, named by its path
// relative to the module with forward slashes.
func each(t *testing.T, f func(file string, src []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && strings.HasPrefix(name, ".") && name != ".ci" || name == "node_modules" || name == "dist" || name == "corpora" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(rel), src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
