package policy

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGlob(t *testing.T) {
	cases := []struct {
		pattern, name string
		want          bool
	}{
		{"write_*", "write_file", true},
		{"write_*", "write_", true},
		{"write_*", "rewrite_file", false},
		{"write-*", "write.file", true},
		{"*_file", "write_file", true},
		{"*_file", "write_files", false},
		{"*", "", true},
		{"a*a", "a", false}, // the star may be empty, the letters may not overlap
		{"a*a", "aa", true},
		{"a*b*c", "a_x_b_y_c", true},
		{"a*b*c", "acb", false},
		{"*b*b*", "b", false},
		{"**", "any", true},
		{"Write_*", "write_x", true},
		{"drop-table", "DROP_TABLE", true},
	}
	for _, c := range cases {
		t.Run(c.pattern+" "+c.name, func(t *testing.T) {
			if got := newGlob(c.pattern).match(c.name); got != c.want {
				t.Errorf("match = %t, want %t", got, c.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("t%02d", 12-i))
	}
	cases := []struct {
		name string
		in   []string
		want string
	}{
		{"none", []string{}, "none"},
		{"sorted", []string{"b", "a"}, "a, b"},
		{"each once", []string{"b", "a", "b"}, "a, b"},
		{"twelve", many[1:], "t00, t01, t02, t03, t04, t05, t06, t07, t08, t09, t10, t11"},
		{"thirteen", many, "t00, t01, t02, t03, t04, t05, t06, t07, t08, t09, t10, t11, …"},
		{"control characters", []string{"a\nb\x1b[31m"}, "a\uFFFDb\uFFFD[31m"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := strings.Join(c.in, ",")
			if got := list(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if strings.Join(c.in, ",") != before {
				t.Error("list reordered its input")
			}
		})
	}
}

func TestShow(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"plain", "read_file", "read_file"},
		{"letters of other scripts stay", "größe_δ", "größe_δ"},
		{"exactly the limit", strings.Repeat("a", maxNameShown), strings.Repeat("a", maxNameShown)},
		{"over the limit", strings.Repeat("a", maxNameShown+1), strings.Repeat("a", maxNameShown) + "…"},
		{"cut between characters", strings.Repeat("é", maxNameShown+1), strings.Repeat("é", maxNameShown) + "…"},
		{"no line breaks or direction marks", "a\r\n\u202eb", "a\uFFFD\uFFFD\uFFFDb"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := show(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzNames holds the three ways of comparing names together: if one of them
// called two names equal and another did not, a renamed tool could slip past a
// list that uses the other.
func FuzzNames(f *testing.F) {
	f.Add("read_file", "read-file")
	f.Add("a.b c", "a_b_c")
	f.Add("drop*table", "drop_table")
	f.Add("é-é", "é_é")
	f.Add("\xff.", "\xff_")
	f.Fuzz(func(t *testing.T, a, b string) {
		na, nb := normalise(a), normalise(b)
		if normalise(na) != na {
			t.Errorf("normalise(%q) is not stable", a)
		}
		if len(na) != len(a) || utf8.ValidString(na) != utf8.ValidString(a) {
			t.Errorf("normalise(%q) changed more than single signs: %q", a, na)
		}
		if same(a, b) != (na == nb) || same(a, b) != same(b, a) {
			t.Errorf("same(%q, %q) = %t, normalised %q, %q", a, b, same(a, b), na, nb)
		}
		if newSet(a).has(b) != same(a, b) {
			t.Errorf("a set of %q has %q: %t, same: %t", a, b, newSet(a).has(b), same(a, b))
		}
		if !strings.Contains(a, "*") && newGlob(a).match(b) != same(a, b) {
			t.Errorf("pattern %q without a star matches %q: %t, same: %t", a, b, newGlob(a).match(b), same(a, b))
		}
		if !newGlob("*").match(b) || !newGlob(a).match(a) || !newGlob(a+"*").match(a+b) || !newGlob("*"+b).match(a+b) {
			t.Errorf("pattern made of %q and %q does not match its own text", a, b)
		}
		if s := show(a); !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxNameShown+1 || strings.ContainsAny(s, "\n\r\x1b\x00") {
			t.Errorf("show(%q) = %q", a, s)
		}
	})
}
