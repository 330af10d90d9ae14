package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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
	for pattern, want := range map[string]string{"(": "RE2", `(?=x)`: "RE2", "x{1001}": "RE2", "(?i)((x?x?){200}){2}[^x]": "the pattern becomes 2407 instructions, more than 1000; repeat less in it", strings.Repeat("x", 2000): "2000 bytes"} {
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

// Lines that are searched by characters give the answers that others give.
func TestSearchLongLines(t *testing.T) {
	fill := strings.Repeat("y\u00e9", unlooked)
	w, _ := open(t, map[string]string{"a": "start" + fill + "needle" + fill + "caf\xe9 end\r\nneedle\n"})
	for _, tc := range []struct {
		pattern string
		lines   []int
	}{
		{"needle", []int{1, 2}}, {"^needle", []int{2}}, {"^start.*needle.*end$", []int{1}}, {"(?i)NEEDLE", []int{1, 2}},
		{"end$", []int{1}}, {"needle$", []int{2}}, {"y$", nil}, {"start$", nil}, {`\x{fffd} end`, []int{1}}, {`\bend`, []int{1}}, {"absent", nil},
	} {
		t.Run(tc.pattern, func(t *testing.T) {
			found, err := w.Search(context.Background(), tc.pattern, SearchOptions{Path: ".", Glob: "**"})
			if err != nil {
				t.Fatal(err)
			}
			var lines []int
			for _, m := range found {
				lines = append(lines, m.Line)
			}
			if diff := cmp.Diff(tc.lines, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A search of one long line ends with its context, and does not take the end for
// that of the line.
func TestSearchEndsInsideALine(t *testing.T) {
	w, _ := open(t, map[string]string{"a": strings.Repeat("x", 1<<20)})
	for _, pattern := range []string{"(?i)((x?x?){8}){2}[^x]", "[^x]|x$"} {
		ctx := &ending{Context: context.Background()}
		ctx.looks.Store(30) // 17 of them while the line is read
		_, err := w.Search(ctx, pattern, SearchOptions{Path: "a", Glob: "**"})
		wantErr(t, err, "the search was cut off after reading 1 MiB, at 'a', with 0 found so far; narrow path or glob")
		if n := ctx.looks.Load(); n != -1 {
			t.Errorf("%s: it was looked at the context until %d", pattern, n)
		}
	}
}

// ending is a context that ends after some looks at it.
type ending struct {
	context.Context
	looks atomic.Int64
}

func (e *ending) Err() error {
	if e.looks.Load() < 0 || e.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Only so many searches work at once; one that waits ends with its context.
func TestSearchesWait(t *testing.T) {
	w, _ := open(t, map[string]string{"a": "needle\n"})
	for range cap(w.searches) {
		w.searches <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	search := func(ctx context.Context) {
		_, err := w.Search(ctx, "needle", SearchOptions{Path: ".", Glob: "**"})
		done <- err
	}
	go search(ctx)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	go search(context.Background())
	<-w.searches
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(w.searches); n != cap(w.searches)-1 {
		t.Errorf("%d searches are at work", n)
	}
}
