package toolset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		"read_file": "read_file", "get-thing": "get_thing", "a.b c-d": "a_b_c_d", "Search2": "Search2",
		"import": "import_tool", "None": "None_tool", "print": "print", "match": "match", "2fa": "_2fa",
		"__class__": "__class___tool", "-": "_", "__": "___tool", "_x": "_x",
		strings.Repeat("x", 128): strings.Repeat("x", 128),
	} {
		if got, err := normalise(in); got != want || err != nil {
			t.Errorf("normalise(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "a/b", "a:b", "naïve", "rm\x1b[31m", "a\nb", "x\x00", "\u202e", "а", "a\xff", strings.Repeat("x", 129), "a\u00a0b"} {
		got, err := normalise(in)
		if err == nil {
			t.Errorf("normalise(%q) = %q", in, got)
		} else if strings.ContainsAny(err.Error(), "\x1b\x00\n\u202e\xff") || len(err.Error()) > 400 {
			t.Errorf("normalise(%q): the error repeats what it should not: %q", in, err)
		}
	}
}

func TestForms(t *testing.T) {
	c := claim{server: "git-hub", original: "create-issue", name: "create_issue"}
	want := []string{"create_issue", "create-issue", "git_hub_create_issue", "git-hub_create-issue", "git-hub.create-issue", "git-hub.create_issue"}
	if diff := cmp.Diff(want, c.forms("create_issue")); diff != "" {
		t.Error(diff)
	}
	if got := c.forms("git_hub_create_issue")[0]; got != "git_hub_create_issue" {
		t.Errorf("the first form is %q", got)
	}
	if got := prefix("7 sëas"); got != "_7_s_as" {
		t.Errorf("prefix is %q", got)
	}
}

func TestAssign(t *testing.T) {
	c := func(server, tool string) claim { return claim{server: server, original: tool, name: tool} }
	type given map[string]string
	for _, tc := range []struct {
		name   string
		bound  map[string]string
		claims []claim
		want   given // "server tool" to name
		errs   int
	}{
		{"own names", nil, []claim{c("a", "x"), c("b", "y")}, given{"a x": "x", "b y": "y"}, 0},
		{"a local tool keeps its name", map[string]string{"x": ""}, []claim{c("a", "x")}, given{"a x": "a_x"}, 0},
		{"two upstreams: both are prefixed", nil, []claim{c("a", "x"), c("b", "x"), c("b", "z")}, given{"a x": "a_x", "b x": "b_x", "b z": "z"}, 0},
		{"like names of one server", nil, []claim{{"a", "x-y", "x_y"}, {"a", "x.y", "x_y"}}, given{"a x-y": "a_x_y"}, 1},
		{"the same tool twice", nil, []claim{c("a", "x"), c("a", "x")}, given{"a x": "x"}, 1},
		{"given names stay", map[string]string{"x": c("b", "x").key()}, []claim{c("a", "x"), c("b", "x")}, given{"a x": "a_x", "b x": "x"}, 0},
		{"nor are they lost to one who left", map[string]string{"x": c("b", "x").key()}, []claim{c("a", "x")}, given{"a x": "a_x"}, 0},
		{"a prefixed name does not push out a plain one", map[string]string{"x": ""}, []claim{c("a", "x"), c("b", "a_x")}, given{"b a_x": "a_x"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bound := map[string]string{}
			for k, v := range tc.bound {
				bound[k] = v
			}
			names, errs := assign(bound, tc.claims)
			got := given{}
			for key, name := range names {
				got[strings.ReplaceAll(key, "\x00", " ")] = name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(errs) != tc.errs {
				t.Error(diff, errs)
			}
			again, _ := assign(bound, tc.claims)
			if diff := cmp.Diff(names, again); diff != "" {
				t.Errorf("the second time gives other names: %s", diff)
			}
		})
	}
}

func FuzzNormalise(f *testing.F) {
	f.Add("a-b.c d")
	f.Add("__init__")
	f.Fuzz(func(t *testing.T, name string) {
		got, err := normalise(name)
		if err == nil && (!identifier(got) || keyword(got) || len(got) > maxToolName+6) {
			t.Errorf("normalise(%q) = %q", name, got)
		}
	})
}
