package workspace

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSearch(t *testing.T) {
	long := strings.Repeat("é", 3000) + "needle"
	w, _ := open(t, map[string]string{
		"a.go":     "package a\nfunc Needle() {}\n",
		"b.txt":    "no\r\nneedle here\r\nneedle again",
		"sub/c.go": "// needle\n",
		"bin":      "needle\x00",
		"latebin":  strings.Repeat("x\n", 5000) + "\x00needle\n",
		"latin1":   "caf\xe9 needle\n",
		"long":     long + "\nneedle after\n",
		".env":     "needle=1\n",
		"empty":    "",
	})
	for _, tc := range []struct {
		name, pattern string
		o             SearchOptions
		want          []string
	}{
		{"in order, line ends gone, binaries and hidden left out", "needle", SearchOptions{},
			[]string{"b.txt:2:needle here", "b.txt:3:needle again", "latebin:5001:\x00needle", "latin1:1:caf\uFFFD needle", "long:1:…", "long:2:needle after", "sub/c.go:1:// needle"}},
		{"glob", "needle", SearchOptions{Glob: "*.go"}, []string{"sub/c.go:1:// needle"}},
		{"ignore case", "needle", SearchOptions{Glob: "*.go", IgnoreCase: true}, []string{"a.go:2:func Needle() {}", "sub/c.go:1:// needle"}},
		{"anchors are of the line", "^needle.*n$", SearchOptions{Glob: "b.*"}, []string{"b.txt:3:needle again"}},
		{"end before a carriage return", "here$", SearchOptions{}, []string{"b.txt:2:needle here"}},
		{"one file, hidden too", "needle", SearchOptions{Path: ".env"}, []string{".env:1:needle=1"}},
		{"max", "needle", SearchOptions{Max: 2}, []string{"b.txt:2:needle here", "b.txt:3:needle again"}},
		{"empty lines match an empty pattern", "^$", SearchOptions{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.o.Path == "" {
				tc.o.Path = "."
			}
			if tc.o.Glob == "" {
				tc.o.Glob = "**"
			}
			if tc.o.Max == 0 {
				tc.o.Max = 100
			}
			found, err := w.Search(context.Background(), tc.pattern, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found {
				if m.Cut {
					if n := len([]rune(m.Text)); n != maxLineChars {
						t.Errorf("a cut line has %d characters", n)
					}
					m.Text = "…"
				}
				got = append(got, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for pattern, want := range map[string]string{"(": "RE2", `(?=x)`: "RE2", "x{1001}": "RE2", strings.Repeat("x", 2000): "2000 bytes"} {
		_, err := w.Search(context.Background(), pattern, SearchOptions{Path: ".", Glob: "**", Max: 1})
		wantErr(t, err, want)
	}
}

func TestSearchIsBounded(t *testing.T) {
	w, _ := open(t, map[string]string{"a": strings.Repeat("needle\n", 1000), "b": strings.Repeat("y", 300_000) + "needle\nnext\n"})
	ctx := context.Background()
	w.caps.scanned = 5000
	_, err := w.Search(ctx, "needle", SearchOptions{Path: ".", Glob: "**"})
	wantErr(t, err, "gave up after reading 5000 bytes, at 'a', with 714 found so far; narrow path or glob")
	_, err = w.Search(ctx, "absent", SearchOptions{Path: "b", Glob: "**", Max: 10})
	wantErr(t, err, "at 'b', with 0 found so far; narrow path or glob")
	w.caps = defaultCaps
	w.caps.line = 200_000
	got, err := w.Search(ctx, "needle|next", SearchOptions{Path: "b", Glob: "**", Max: 10})
	if diff := cmp.Diff([]Match{{Path: "b", Line: 2, Text: "next"}}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}
