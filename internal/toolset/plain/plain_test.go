package plain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		max            int
	}{
		{"ordinary text stays", "one\n\ttwo é 🙂", "one\n\ttwo é 🙂", 100},
		{"terminal sequence loses its escape", "a\x1b[31mred\x07", "a[31mred", 100},
		{"carriage returns are line breaks", "a\r\nb\rc", "a\nb\nc", 100},
		{"line separators are line breaks", "a\u2028b\u2029c\u0085d", "a\nb\nc\nd", 100},
		{"bidi overrides go", "a\u202etxt.exe\u2066", "atxt.exe", 100},
		{"invisible tag letters go", "hi\U000E0069\U000E0067\u200b", "hi", 100},
		{"invalid bytes are replaced", "a\xff\xfeb", "a\uFFFDb", 100},
		{"cut on a character boundary", "ééééé", "éé…", 8},
		{"too small for the ellipsis", "abc", "", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Clean(tc.in, tc.max); got != tc.want {
				t.Errorf("Clean(%q, %d) = %q, want %q", tc.in, tc.max, got, tc.want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a b":      "'a b'",
		"it's":     `'it\'s'`,
		`say "hi"`: `'say "hi"'`,
		"a\nb\x1b": `'a\nb\x1b'`,
		"é\u202e":  `'é\u202e'`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
	if got := Quote(strings.Repeat("x", 10_000)); len(got) > 220 {
		t.Errorf("Quote of a long text is %d bytes long", len(got))
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff", 10)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, s string, max int) {
		if max < 0 || max > 1<<16 {
			return
		}
		for name, got := range map[string]string{"Clean": Clean(s, max), "Line": Line(s, max)} {
			if !utf8.ValidString(got) || len(got) > max && max >= 0 {
				t.Errorf("%s(%q, %d) = %q", name, s, max, got)
			}
			if strings.ContainsAny(got, "\x00\x1b\r\u202e") {
				t.Errorf("%s let a control character through: %q", name, got)
			}
		}
	})
}
