package workspace

import (
	"bytes"
	"context"
	"encoding/json"
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
	w.caps.results = 4
	_, err = w.List(context.Background(), ".")
	wantErr(t, err, "'.' has more than 4 entries; name a folder further down, or find some of them with find_files and a pattern")
	w.caps = defaultCaps
	w.caps.answer = 200
	_, err = w.List(context.Background(), ".")
	wantErr(t, err, "'.' has 5 entries, which do not fit the 200 bytes of one answer")
}

func TestFind(t *testing.T) {
	w, dir := open(t, map[string]string{
		"a.go": "", "a-b.go": "", "b.txt": "", "sub/c.go": "", "sub/deep/d.go": "", "sub/deep/e.GO": "",
		".git/config": "", ".git/refs/x": "", "sub/.git/config": "", ".github/w.yml": "", "sub/.env": "", "[x].go": "", "ü/ö.txt": "",
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
		{"hidden folder when written", ".*/**", ".", []string{".github/w.yml"}},
		{"never .git", "{,sub/}.git/**", ".", []string{}},
		{"only when it is the path", "*", ".git", []string{".git/config", ".git/refs/x"}},
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
}

// TestNothingIsCut holds the rule of all answers: whole, or the number that was
// asked for, or an error that says what to do.
func TestNothingIsCut(t *testing.T) {
	files := map[string]string{}
	for i := range 10 {
		files[fmt.Sprintf("f%d", i)] = "x\n"
	}
	w, _ := open(t, files)
	ctx := context.Background()
	find := func(max int) (int, error) {
		found, err := w.Find(ctx, "*", ".", max)
		return len(found), err
	}
	search := func(max int) (int, error) {
		found, err := w.Search(ctx, "x", SearchOptions{Path: ".", Glob: "**", Max: max})
		return len(found), err
	}
	for _, tc := range []struct {
		name    string
		call    func(int) (int, error)
		results int
		answer  int64
		max     int
		want    int
		errs    []string
	}{
		{"find all", find, 20, 1000, 0, 10, nil},
		{"find all, just as many as there may be", find, 10, 1000, 0, 10, nil},
		{"find all, one too many", find, 9, 1000, 0, 0, []string{"found more than 9, the next in 'f9', and returned none of them", "narrow path or the pattern, or give max_results=N to take the first N (at most 100000)"}},
		{"find the first", find, 9, 1000, 4, 4, nil},
		{"find as many as there are", find, 9, 1000, 10, 10, nil},
		{"find more than there are", find, 9, 1000, 99, 10, nil},
		{"find too many bytes", find, 9, 17, 0, 0, []string{"found more than 3, which at 'f3' no longer fit the 17 bytes of one answer", "or give max_results=3"}},
		{"find too many bytes by number", find, 9, 17, 4, 0, []string{"give max_results=3 to take the first 3"}},
		{"find as many as fit", find, 9, 17, 3, 3, nil},
		{"search all", search, 20, 1000, 0, 10, nil},
		{"search all, one too many", search, 9, 1000, 0, 0, []string{"found more than 9, the next in 'f9', and returned none of them", "narrow pattern, path or glob, or give max_results=N"}},
		{"search the first", search, 9, 1000, 4, 4, nil},
		{"search too many bytes", search, 9, 200, 0, 0, []string{"found more than 3, which at 'f3' no longer fit the 200 bytes of one answer"}},
		{"search as many as fit", search, 9, 200, 3, 3, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.caps.results, w.caps.answer = tc.results, tc.answer
			got, err := tc.call(tc.max)
			if got != tc.want || (err != nil) != (len(tc.errs) > 0) {
				t.Errorf("%d, %v, want %d", got, err, tc.want)
			}
			for _, part := range tc.errs {
				wantErr(t, err, part)
			}
		})
	}
}

func TestJSONSize(t *testing.T) {
	for _, s := range []string{"", "abc", "\x00\x1f\n", `"\`, "\u2028\u2029", "日本 \uFFFD \x7f", "<&>"} {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := jsonSize(s); got < buf.Len()-1 || got > 6*len(s)+2 {
			t.Errorf("%q has %d bytes, said are %d", s, buf.Len()-1, got)
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{2 << 30: "2 GiB", 8 << 20: "8 MiB", 1536 << 20: "1536 MiB", 4 << 10: "4 KiB", 5000: "5000 bytes", 0: "0 bytes"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
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
	wantErr(t, err, "gave up after looking at 55 entries, at 'many/")
	wantErr(t, err, " found so far; narrow path or the pattern")
	w.caps = defaultCaps
	w.caps.entries = 40
	_, err = w.Find(ctx, "*", "many", 1000)
	wantErr(t, err, "more than 40 entries")
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
