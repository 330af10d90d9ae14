package policy

import "strings"

// folded says which bytes of a name count as "_": what a toolset replaces when it
// makes an identifier of a name.
func folded(b byte) byte {
	switch b {
	case '-', '.', ' ':
		return '_'
	}
	return b
}

// normalise gives the form under which names are compared.
func normalise(name string) string {
	if !strings.ContainsAny(name, "-. ") {
		return name
	}
	b := []byte(name)
	for i := range b {
		b[i] = folded(b[i])
	}
	return string(b)
}

// broad is the form under which names are compared where that denies: without
// regard to case, too.
func broad(name string) string { return strings.ToLower(normalise(name)) }

// same reports whether two names have one normalised form. It allocates nothing:
// it runs for every entry of a fence at every call.
func same(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if folded(a[i]) != folded(b[i]) {
			return false
		}
	}
	return true
}

// set is a set of normalised names.
type set map[string]struct{}

func newSet(names ...string) set {
	s := make(set, len(names))
	for _, n := range names {
		s[normalise(n)] = struct{}{}
	}
	return s
}

func (s set) has(name string) bool {
	_, ok := s[normalise(name)]
	return ok
}

// glob is a pattern in which "*" stands for any text, also none. Its parts are
// what lies between the stars, normalised.
type glob []string

func newGlob(pattern string) glob { return strings.Split(broad(pattern), "*") }

func (g glob) match(name string) bool {
	name = broad(name)
	if len(g) == 1 { // no star: the usual entry
		return g[0] == name
	}
	last := len(g) - 1
	if len(name) < len(g[0])+len(g[last]) || !strings.HasPrefix(name, g[0]) || !strings.HasSuffix(name, g[last]) {
		return false
	}
	name = name[len(g[0]) : len(name)-len(g[last])]
	for _, part := range g[1:last] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return true
}

// names are all the names a question is about.
type names struct {
	asked string
	forms []string
}

func (n names) any(match func(string) bool) bool {
	if match(n.asked) {
		return true
	}
	for _, f := range n.forms {
		if match(f) {
			return true
		}
	}
	return false
}

// granted is any for lists that allow: they match the name that scripts use and
// longer forms of it (with its source in front), but not a shorter one. What a
// source calls "read_file" and a clash made "fs_read_file" is another tool than the
// "read_file" that somebody allowed.
func (n names) granted(match func(string) bool) bool {
	if match(n.asked) {
		return true
	}
	for _, f := range n.forms {
		if longer := len(f) - len(n.asked); longer > 0 && folded(f[longer-1]) == '_' && same(f[longer:], n.asked) && match(f) {
			return true
		}
	}
	return false
}

// in reports whether a list that allows has one of the names.
func (n names) in(list []string) bool {
	return n.granted(func(name string) bool {
		for _, entry := range list {
			if same(entry, name) {
				return true
			}
		}
		return false
	})
}
