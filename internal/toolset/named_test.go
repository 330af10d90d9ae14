package toolset

import (
	"testing"

	"github.com/belljar/belljar"
)

// TestNamed has what a name may stand for that is not the one scripts use.
func TestNamed(t *testing.T) {
	// bound says which tool was given a name first, as in a longer life.
	for _, tc := range []struct {
		name   string
		bound  map[string]string
		claims []claim
		want   map[string]string // asked to the name of the tool; empty: none
	}{
		{"one tool", nil, []claim{{"s", "get-thing.3", "get_thing_3"}},
			map[string]string{"get_thing_3": "get_thing_3", "get-thing.3": "get_thing_3", "get-thing-3": "get_thing_3", "get thing 3": "get_thing_3",
				"s.get-thing.3": "", "s_get_thing_3": "", "Get-thing.3": "", "get--thing.3": ""}},
		{"one that is offered twice", nil, []claim{{"s", "a-b", "a_b"}, {"s", "a-b", "a_b"}}, map[string]string{"a-b": "a_b"}},
		{"two of one server", nil, []claim{{"s", "a-b", "a_b"}, {"s", "a.b", "a_b"}},
			map[string]string{"a-b": "", "a.b": "", "a_b": "", "s.a-b": "", "s.a.b": "", "s_a_b": "s_a_b"}},
		{"two servers", nil, []claim{{"s", "a-b", "a_b"}, {"t", "a-b", "a_b"}},
			map[string]string{"a-b": "", "a_b": "", "s.a-b": "s_a_b", "t.a_b": "t_a_b"}},
		{"one that came later", map[string]string{"a_b": "s\x00a-b"}, []claim{{"s", "a-b", "a_b"}, {"t", "a.b", "a_b"}},
			map[string]string{"a_b": "a_b", "a-b": "", "a.b": "", "t.a.b": "t_a_b"}},
		{"one whose first owner is gone", map[string]string{"a_b": "s\x00a-b"}, []claim{{"t", "a-b", "a_b"}},
			map[string]string{"a_b": "", "a-b": "", "t.a-b": "t_a_b"}},
		{"a local tool has the name", map[string]string{"a_b": ""}, []claim{{"s", "a-b", "a_b"}},
			map[string]string{"a-b": "", "a.b": "", "s.a-b": "s_a_b"}},
		{"another tool is called like the prefixed one", map[string]string{"b": ""}, []claim{{"s", "b", "b"}, {"t", "s-b", "s_b"}},
			map[string]string{"s_b": "s_b", "s-b": "", "s.b": "", "t.s-b": ""}},
		{"the same, and both have their names", nil, []claim{{"s", "b", "b"}, {"t", "s-b", "s_b"}},
			map[string]string{"b": "b", "s_b": "s_b", "s-b": "", "s.b": ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bound := map[string]string{}
			for name, key := range tc.bound {
				bound[name] = key
			}
			given, _ := assign(bound, tc.claims)
			s := &Set{remotes: map[string]*remote{}, wanted: wanted(tc.claims, given)}
			for _, c := range tc.claims {
				if name, ok := given[c.key()]; ok {
					s.remotes[name] = &remote{original: c.original, wanted: c.name, tool: belljar.Tool{Name: name, Forms: c.forms(name)}}
				}
			}
			for asked, want := range tc.want {
				got := ""
				if r := s.named(asked); r != nil {
					got = r.tool.Name
					if folded(asked) != got {
						t.Errorf("%q and %q are two names for policy", asked, got)
					}
				}
				if got != want {
					t.Errorf("%q is %q, want %q", asked, got, want)
				}
			}
		})
	}
}
