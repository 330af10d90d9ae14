package toolset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// maxToolName is the longest name a tool may have at its source, in bytes (MCP
// allows 128), maxServerName the longest a server may have in the configuration.
const (
	maxToolName   = 128
	maxServerName = 64
)

// normalise makes an identifier of a tool's name: `-`, `.` and spaces become
// `_`. What cannot be one by that rule is an error; nothing else is guessed, so
// that no two unlike names fall together unseen.
func normalise(name string) (string, error) {
	switch {
	case name == "":
		return "", fmt.Errorf("a tool without a name")
	case len(name) > maxToolName:
		return "", fmt.Errorf("tool name %s is longer than %d characters", plain.Quote(name), maxToolName)
	}
	id := folded(name)
	if id[0] >= '0' && id[0] <= '9' {
		id = "_" + id
	}
	if !identifier(id) {
		return "", fmt.Errorf("tool name %s has characters other than letters, digits, '_', '-', '.' and space", plain.Quote(name))
	}
	// A keyword cannot follow the dot in tools.<name>, and a dunder means
	// something to the language.
	if keyword(id) || strings.HasPrefix(id, "__") && strings.HasSuffix(id, "__") {
		id += "_tool"
	}
	return id, nil
}

// folded replaces what stands for `_` in names.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == ' ' {
			return '_'
		}
		return r
	}, name)
}

// identifier reports whether s is an ASCII identifier.
func identifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != ""
}

// keyword reports whether s is a reserved word of Python.
func keyword(s string) bool {
	switch s {
	case "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
		"del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
		"nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield":
		return true
	}
	return false
}

// A claim is one upstream tool that wants a name.
type claim struct {
	server   string // as configured
	original string // as the server calls it
	name     string // normalised
}

func (c claim) key() string { return c.server + "\x00" + c.original }

// prefix is the server's name as it appears in front of a tool's name.
func prefix(server string) string {
	p := strings.Map(func(r rune) rune {
		if r < 0x80 && identifier("_"+string(r)) {
			return r
		}
		return '_'
	}, server)
	if p[0] >= '0' && p[0] <= '9' {
		p = "_" + p
	}
	return p
}

func (c claim) prefixed() string { return prefix(c.server) + "_" + c.name }

// forms are all names by which policy must know the tool, the one that scripts
// use first.
func (c claim) forms(name string) []string {
	all := []string{name, c.name, c.original,
		c.prefixed(), c.server + "_" + c.original, c.server + "." + c.original, c.server + "." + c.name}
	var out []string
	for _, f := range all {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// assign gives every claim the name that scripts call it by. bound holds what was
// given before and what local tools have (with an empty key); it is extended. A
// claim that cannot be given a name is left out and named in errs.
func assign(bound map[string]string, claims []claim) (given map[string]string, errs []error) {
	given = make(map[string]string, len(claims))
	held := make(map[string]string, len(bound)) // key to name
	for name, key := range bound {
		if key != "" {
			held[key] = name
		}
	}
	wanted := map[string]int{}
	seen := map[string]bool{}
	exact := map[string]bool{} // names that a server uses itself, as they are
	for _, c := range claims {
		if c.original == c.name {
			exact[c.server+"\x00"+c.name] = true
		}
	}
	// A tool gives way to one of its own server that has the name as it is.
	yields := func(c claim) bool { return c.original != c.name && exact[c.server+"\x00"+c.name] }
	fresh := make([]claim, 0, len(claims))
	for _, c := range claims {
		if seen[c.key()] {
			errs = append(errs, fmt.Errorf("MCP server %s offers the tool %s twice; the second is left out", plain.Quote(c.server), plain.Quote(c.original)))
			continue
		}
		seen[c.key()] = true
		if !yields(c) {
			wanted[c.name]++
		}
		if name, ok := held[c.key()]; ok {
			given[c.key()] = name
			continue
		}
		fresh = append(fresh, c)
	}
	// The order decides only who is left out when even the prefixed names
	// clash; it must not depend on which server answered first.
	slices.SortFunc(fresh, func(a, b claim) int { return strings.Compare(a.key(), b.key()) })
	// Undisputed names first, so that a prefixed one never takes them away.
	var disputed []claim
	for _, c := range fresh {
		if _, taken := bound[c.name]; taken || yields(c) || wanted[c.name] > 1 {
			disputed = append(disputed, c)
			continue
		}
		bound[c.name] = c.key()
		given[c.key()] = c.name
	}
	for _, c := range disputed {
		name := c.prefixed()
		if _, taken := bound[name]; taken {
			errs = append(errs, fmt.Errorf("MCP server %s: the tool %s is left out, for the names %s and %s are both taken",
				plain.Quote(c.server), plain.Quote(c.original), plain.Quote(c.name), plain.Quote(name)))
			continue
		}
		bound[name] = c.key()
		given[c.key()] = name
	}
	return given, errs
}

// wanted counts for each name how many tools could be meant by it: those that want
// it as their own, and those that have it as their prefixed name but are called
// otherwise.
func wanted(claims []claim, given map[string]string) map[string]int {
	count := make(map[string]int, 2*len(claims))
	seen := make(map[string]bool, len(claims))
	for _, c := range claims {
		if seen[c.key()] { // offered twice
			continue
		}
		seen[c.key()] = true
		count[c.name]++
		if p := c.prefixed(); given[c.key()] != p {
			count[p]++
		}
	}
	return count
}
