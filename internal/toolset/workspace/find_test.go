package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestList(t *testing.T) {
	w, dir := open(t, map[string]string{"b.txt": "12345", "a/x": "", ".hidden": "h", "naïve 🙂": ""})
	link(t, "b.txt", filepath.Join(dir, "link"))
	got, err := w.List(context.Background(), ".")
	if err != nil {
		t.Fatal(err)
	}
	size := func(n int64) *int64 { return &n }
	want := []Entry{
		{".hidden", "file", size(1)}, {"a", "folder", nil}, {"b.txt", "file", size(5)},
		{"link", "link", nil}, {"naïve 🙂", "file", size(0)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	w.caps.entries = 4
	_, err = w.List(context.Background(), ".")
	wantErr(t, err, "more than 4 entries")
}

func TestFind(t *testing.T) {
	w, dir := open(t, map[string]string{
		"a.go": "", "a-b.go": "", "b.txt": "", "sub/c.go": "", "sub/deep/d.go": "", "sub/deep/e.GO": "",
		".git/config": "", ".github/w.yml": "", "sub/.env": "", "[x].go": "", "ü/ö.txt": "",
	})
	if err := os.MkdirAll(filepath.Join(dir, "dir.go"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, pattern, path string
		want                []string
	}{
		{"no slash: any depth", "*.go", ".", []string{"[x].go", "a-b.go", "a.go", "sub/c.go", "sub/deep/d.go"}},
		{"slash: from path", "sub/*.go", ".", []string{"sub/c.go"}},
		{"dot slash: only here", "./*.go", ".", []string{"[x].go", "a-b.go", "a.go"}},
		{"double star between", "sub/**/*.go", ".", []string{"sub/c.go", "sub/deep/d.go"}},
		{"double star at the end", "sub/**", ".", []string{"sub/c.go", "sub/deep/d.go", "sub/deep/e.GO"}},
		{"beneath path, named from the top", "**/*.go", "sub", []string{"sub/c.go", "sub/deep/d.go"}},
		{"braces", "*.{txt,GO}", ".", []string{"b.txt", "sub/deep/e.GO", "ü/ö.txt"}},
		{"nested braces", "{a{,-b},sub/c}.go", ".", []string{"a-b.go", "a.go", "sub/c.go"}},
		{"class", "[ab].*", ".", []string{"a.go", "b.txt"}},
		{"negated class", "[!a]*.txt", ".", []string{"b.txt", "ü/ö.txt"}},
		{"escaped", `\[x\].go`, ".", []string{"[x].go"}},
		{"question mark is one character", "?.txt", "ü", []string{"ü/ö.txt"}},
		{"everything but hidden", "**", "sub", []string{"sub/c.go", "sub/deep/d.go", "sub/deep/e.GO"}},
		{"hidden when written", "sub/.*", ".", []string{"sub/.env"}},
		{"hidden folder when written", ".git*/**", ".", []string{".git/config", ".github/w.yml"}},
		{"hidden folder as path", "*", ".git", []string{".git/config"}},
		{"a folder's pattern is not the file", "a.go/**", ".", []string{}},
		{"nothing", "*.none", ".", []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := w.Find(context.Background(), tc.pattern, tc.path, 100)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for pattern, want := range map[string]string{
		"": "empty", "/etc/*": "absolute", "../*": "'..'", "[": "malformed", "a{b": "without its '}'",
		strings.Repeat("x", 2000): "2000 bytes", strings.Repeat("{a,b}", 9): "more than 64 alternatives",
		strings.Repeat("a/", 70) + "b": "more than 63 parts", strings.Repeat("{", 9) + strings.Repeat("}", 9): "nests",
		".": "names nothing",
	} {
		_, err := w.Find(context.Background(), pattern, ".", 1)
		wantErr(t, err, want)
	}
	got, err := w.Find(context.Background(), "**", ".", 2)
	if diff := cmp.Diff([]string{"[x].go", "a-b.go"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestWalkIsBounded(t *testing.T) {
	files := map[string]string{strings.Repeat("d/", 20) + "x": ""}
	for i := range 50 {
		files[fmt.Sprintf("many/%d", i)] = ""
	}
	w, _ := open(t, files)
	ctx := context.Background()
	w.caps.depth = 10
	_, err := w.Find(ctx, "**", ".", 1000)
	wantErr(t, err, "more than 10 folders deep")
	if _, err := w.Find(ctx, "many/**", ".", 1000); err != nil {
		t.Errorf("a folder that cannot match was entered: %v", err)
	}
	w.caps = defaultCaps
	w.caps.visited = 55
	_, err = w.Find(ctx, "**", ".", 1000)
	wantErr(t, err, "gave up after 55 entries")
	w.caps.visited = 40
	_, err = w.Find(ctx, "*", "many", 1000)
	wantErr(t, err, "more than 40 entries")
	w.caps = defaultCaps
	w.caps.file = 100
	_, err = w.Find(ctx, "many/*", ".", 1000)
	wantErr(t, err, "max_results")
}

func TestUnreadableFoldersArePassedOver(t *testing.T) {
	// Root may read it all the same; the answer is the same.
	w, dir := open(t, map[string]string{"a/x": "", "shut/y": "", "z": ""})
	if err := os.Chmod(filepath.Join(dir, "shut"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "shut"), 0o755) })
	got, err := w.Find(context.Background(), "[axz]*", ".", 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/x", "z"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("**/*.{go,md}", "a/b/c.go")
	f.Add("[!a]*/../{x,{y,z}}", ".git/x")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := parseGlob(pattern)
		if err != nil {
			return
		}
		at := g.begin()
		parts := strings.Split(name, "/")
		for i, part := range parts {
			matched, next := g.step(at, part)
			if matched && strings.HasPrefix(part, ".") && !strings.Contains(pattern, ".") {
				t.Errorf("%q matched the hidden %q", pattern, name)
			}
			if next == nil {
				break
			}
			if at = next; i > 100 {
				break
			}
		}
	})
}
