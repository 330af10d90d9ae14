package workspace

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// A glob is a pattern over paths with `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}` and,
// as a whole part, `**` for any number of folders. A pattern without a slash
// matches the name at any depth. A name that begins with a dot is matched only
// where the pattern writes the dot, so hidden files stay out unless they are asked
// for. (A walk enters no .git at all.)
//
// It is matched one path part at a time while a walk descends, so that folders
// which cannot hold a match are not entered.
type glob struct {
	alts [][]string // alternatives, each as parts; at most 64 parts
}

// state holds, for each alternative, the set of parts that may match next. Bit n
// set where n is the number of parts means: matched.
type state []uint64

const (
	maxPattern = 1024
	maxAlts    = 64
	maxParts   = 63
)

func parseGlob(pattern string) (*glob, error) {
	switch {
	case pattern == "":
		return nil, errors.New(`the pattern is empty; "**" matches everything`)
	case len(pattern) > maxPattern:
		return nil, fmt.Errorf("the pattern is %d bytes long, more than %d", len(pattern), maxPattern)
	}
	expanded, err := expandBraces(pattern)
	if err != nil {
		return nil, err
	}
	g := &glob{}
	for _, alt := range expanded {
		switch {
		case strings.HasPrefix(alt, "/"):
			return nil, fmt.Errorf("the pattern %s is absolute; it is matched beneath path", plain.Quote(pattern))
		case alt == ".":
			return nil, fmt.Errorf("the pattern %s names nothing", plain.Quote(pattern))
		case !strings.Contains(alt, "/"):
			alt = "**/" + alt
		}
		var parts []string
		for part := range strings.SplitSeq(alt, "/") {
			switch part {
			case "", ".":
				continue
			case "..":
				return nil, fmt.Errorf("the pattern %s has a '..' part; use path to begin elsewhere", plain.Quote(pattern))
			case "**":
				if len(parts) > 0 && parts[len(parts)-1] == "**" {
					continue
				}
			default:
				// path.Match is checked here so that matching cannot fail.
				part = strings.ReplaceAll(part, "[!", "[^")
				if _, err := path.Match(part, "x"); err != nil {
					return nil, fmt.Errorf("the pattern %s is malformed at %s", plain.Quote(pattern), plain.Quote(part))
				}
			}
			parts = append(parts, part)
		}
		if len(parts) == 0 {
			return nil, fmt.Errorf("the pattern %s names nothing", plain.Quote(pattern))
		}
		if len(parts) > maxParts {
			return nil, fmt.Errorf("the pattern %s has more than %d parts", plain.Quote(pattern), maxParts)
		}
		g.alts = append(g.alts, parts)
	}
	return g, nil
}

// expandBraces turns {a,b} into alternatives, innermost last.
func expandBraces(pattern string) ([]string, error) {
	out := []string{""}
	for pattern != "" {
		open := braceIndex(pattern)
		if open < 0 {
			return appendAll(out, []string{pattern})
		}
		end, choices, err := braceGroup(pattern[open:])
		if err != nil {
			return nil, err
		}
		var expanded []string
		for _, c := range choices {
			sub, err := expandBraces(c)
			if err != nil {
				return nil, err
			}
			expanded = append(expanded, sub...)
		}
		if out, err = appendAll(out, []string{pattern[:open]}); err != nil {
			return nil, err
		}
		if out, err = appendAll(out, expanded); err != nil {
			return nil, err
		}
		pattern = pattern[open+end:]
	}
	return out, nil
}

// braceIndex finds the first brace that is not escaped.
func braceIndex(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			return i
		}
	}
	return -1
}

// braceGroup splits the group that s begins with and says where it ends.
func braceGroup(s string) (end int, choices []string, err error) {
	depth, from := 0, 1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
			if depth > 8 {
				return 0, nil, errors.New("the pattern nests more than 8 braces")
			}
		case ',':
			if depth == 1 {
				choices = append(choices, s[from:i])
				from = i + 1
			}
		case '}':
			depth--
			if depth == 0 {
				return i + 1, append(choices, s[from:i]), nil
			}
		}
	}
	return 0, nil, errors.New("the pattern has a '{' without its '}'")
}

func appendAll(heads, tails []string) ([]string, error) {
	if len(heads)*len(tails) > maxAlts {
		return nil, fmt.Errorf("the pattern has more than %d alternatives", maxAlts)
	}
	out := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, h+t)
		}
	}
	return out, nil
}

// begin is the state before the first part of a path.
func (g *glob) begin() state {
	s := make(state, len(g.alts))
	for i, parts := range g.alts {
		s[i] = skip(parts, 1)
	}
	return s
}

// skip adds what follows each `**`, which may stand for nothing.
func skip(parts []string, set uint64) uint64 {
	for i, p := range parts {
		if set&(1<<i) != 0 && p == "**" {
			set |= 1 << (i + 1)
		}
	}
	return set
}

// step consumes one part of a path. It reports whether the path so far matches
// and whether anything below it could; next is nil when nothing can.
func (g *glob) step(s state, name string) (matched bool, next state) {
	hidden := strings.HasPrefix(name, ".")
	alive := false
	next = make(state, len(g.alts))
	for i, parts := range g.alts {
		var set uint64
		for j, p := range parts {
			if s[i]&(1<<j) == 0 {
				continue
			}
			if p == "**" {
				if !hidden {
					set |= 1 << j
					// At the end it matches what it consumed, and only that:
					// a/** is not the file a.
					matched = matched || j == len(parts)-1
				}
				continue
			}
			if hidden && !strings.HasPrefix(p, ".") && !strings.HasPrefix(p, `\.`) {
				continue
			}
			if ok, _ := path.Match(p, name); ok { // the pattern was checked
				set |= 1 << (j + 1)
			}
		}
		end := len(parts)
		set = skip(parts, set)
		if set&(1<<end) != 0 && parts[end-1] != "**" {
			matched = true
		}
		next[i] = set
		if set&(1<<end-1) != 0 {
			alive = true
		}
	}
	if !alive {
		next = nil
	}
	return matched, next
}
