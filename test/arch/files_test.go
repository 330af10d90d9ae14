package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

const maxLines = 500

// TestFileLength: a file holds one noun; one that outgrew the limit holds two.
func TestFileLength(t *testing.T) {
	each(t, func(file string, src []byte) {
		if !strings.HasSuffix(file, ".go") || generated(src) {
			return
		}
		if n := bytes.Count(src, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by noun", file, n, maxLines)
		}
	})
}

func generated(src []byte) bool {
	head, _, _ := bytes.Cut(src, []byte("\npackage "))
	return bytes.Contains(head, []byte("DO NOT EDIT"))
}

// TestSkipsOnlyInTestkit: a test that skips by itself cannot be told by CI that
// it must not.
func TestSkipsOnlyInTestkit(t *testing.T) {
	each(t, func(file string, src []byte) {
		if !strings.HasSuffix(file, ".go") || strings.HasPrefix(file, "internal/testkit/") || !bytes.Contains(src, []byte("Skip")) {
			return
		}
		for _, line := range skips(t, file, src) {
			t.Errorf("%s:%d skips by itself: say what the test needs with testkit.Need", file, line)
		}
	})
}

func skips(t *testing.T, file string, src []byte) []int {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok || x.Name != "t" && x.Name != "b" && x.Name != "tb" && x.Name != "f" {
			return true
		}
		switch sel.Sel.Name {
		case "Skip", "Skipf", "SkipNow":
			lines = append(lines, fset.Position(call.Pos()).Line)
		}
		return true
	})
	return lines
}

func TestSkipsSeesThem(t *testing.T) {
	src := "package p\nfunc TestX(t *testing.T) {\n\tif true {\n\t\tt.Skipf(\"no\")\n\t}\n\tfilepath.SkipDir()\n}\n"
	if got := skips(t, "x.go", []byte(src)); len(got) != 1 || got[0] != 4 {
		t.Errorf("skips = %v", got)
	}
}

// The words of whoever wrote the tree, and of how, have no place in it: files
// speak to their readers. The pattern is in pieces so as not to match itself.
var workplace = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`/work` + `/(main|shared)`,
	`\.lib` + `rary/env`,
	`\bsub` + `agent`,
	`as an AI ` + `(language )?model`,
	`\bAN` + `THROPIC_API_KEY`,
	`\bissue ` + `#?[0-9]+`,
	`brief` + `\.md`,
	`Generated (with|by) ` + `(Claude|ChatGPT|Copilot)`,
}, "|"))

var unfinished = regexp.MustCompile(`//\s*(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestNoWorkplaceWords(t *testing.T) {
	each(t, func(file string, src []byte) {
		if bytes.IndexByte(src, 0) >= 0 {
			return // not text
		}
		for i, line := range bytes.Split(src, []byte("\n")) {
			if m := workplace.Find(line); m != nil {
				t.Errorf("%s:%d: %q speaks of where it was written, not of what it does", file, i+1, m)
			}
			if strings.HasSuffix(file, ".go") && unfinished.Match(line) {
				t.Errorf("%s:%d: unfinished: %s", file, i+1, bytes.TrimSpace(line))
			}
		}
	})
}
