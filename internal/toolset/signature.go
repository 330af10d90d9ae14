package toolset

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
)

// maxSignature is the length of the longest signature, in characters.
const maxSignature = 200

// Signature shows how a script calls a tool, in Python's style:
//
//	read_file(path: str, start_line: int = 1, max_lines: int = None) -> str
//
// Required parameters come first, then the optional ones with their defaults. A
// tool whose schema cannot be read is `name(…)`, and `…` also stands for
// parameters that are left out: those that do not fit into 200 characters and
// those whose names are no identifiers. The result is one line of ASCII but for
// the ellipsis.
func Signature(t belljar.Tool) string {
	name := showName(t.Name)
	unreadable := name + "(" + plain.Ellipsis + ")"

	list, ok := parseSchema(t.InputSchema).params()
	if !ok {
		return unreadable
	}
	tail := ")"
	if out := parseSchema(t.OutputSchema); out != nil {
		if r := pythonType(out, 0); r != "" && len(r) <= 60 {
			tail = ") -> " + r
		}
	}
	var shown []string
	skipped := false
	for _, p := range slices.Concat(filter(list, true), filter(list, false)) {
		if !identifier(p.name) || keyword(p.name) || len(p.name) > 60 {
			skipped = true
			continue
		}
		shown = append(shown, showParam(p))
	}
	for {
		all := shown
		if skipped {
			all = append(slices.Clone(shown), plain.Ellipsis)
		}
		s := name + "(" + strings.Join(all, ", ") + tail
		if utf8.RuneCountInString(s) <= maxSignature {
			return s
		}
		if len(shown) == 0 {
			return unreadable
		}
		shown, skipped = shown[:len(shown)-1], true
	}
}

func filter(list []param, required bool) []param {
	var out []param
	for _, p := range list {
		if p.required == required {
			out = append(out, p)
		}
	}
	return out
}

// showName makes sure that a name can do no harm, whoever made the Tool.
func showName(name string) string {
	if len(name) > maxSignature-10 {
		name = name[:maxSignature-10]
	}
	name = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && identifier("_"+string(r)) {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "_"
	}
	return name
}

func showParam(p param) string {
	s := p.name
	typ := pythonType(p.schema, 0)
	if typ != "" && len(typ) <= 60 {
		s += ": " + typ
	} else {
		typ = ""
	}
	if p.required {
		return s
	}
	value := "None"
	if raw, has := p.schema.fields["default"]; has {
		value = literal(raw)
	}
	if typ == "" {
		return s + "=" + value
	}
	return s + " = " + value
}

// pythonType names the type of a value; empty when the schema does not say.
func pythonType(s *schema, depth int) string {
	if depth > maxTypeDepth {
		return ""
	}
	s = s.deref()
	if e := enumType(s); e != "" {
		return e
	}
	if t := s.types(); len(t) > 0 {
		return union(s, t, depth)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		alts := s.list(key)
		if len(alts) == 0 {
			continue
		}
		if len(alts) > maxAlternates {
			return ""
		}
		var names []string
		for _, raw := range alts {
			alt := sub(raw, s.root)
			if alt == nil {
				return ""
			}
			n := pythonType(alt, depth+1)
			if n == "" {
				return ""
			}
			names = append(names, n)
		}
		return join(names)
	}
	if alts := s.list("allOf"); len(alts) == 1 {
		if alt := sub(alts[0], s.root); alt != nil {
			return pythonType(alt, depth+1)
		}
	}
	if _, has := s.fields["properties"]; has {
		return "dict"
	}
	return ""
}

func union(s *schema, types []string, depth int) string {
	if len(types) > maxAlternates {
		return ""
	}
	var names []string
	for _, t := range types {
		switch t {
		case "string":
			names = append(names, "str")
		case "integer":
			names = append(names, "int")
		case "number":
			names = append(names, "float")
		case "boolean":
			names = append(names, "bool")
		case "object":
			names = append(names, "dict")
		case "null":
			names = append(names, "None")
		case "array":
			item := ""
			if items := sub(s.fields["items"], s.root); items != nil {
				item = pythonType(items, depth+1)
			}
			if item == "" {
				names = append(names, "list")
			} else {
				names = append(names, "list["+item+"]")
			}
		default:
			return ""
		}
	}
	return join(names)
}

// join makes a union. None goes without saying in an optional parameter, as it
// does in `x: int = None`.
func join(names []string) string {
	var out []string
	none := false
	for n := range strings.SplitSeq(strings.Join(names, " | "), " | ") {
		if n == "None" {
			none = true
		} else if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	if len(out) == 0 && none {
		return "None"
	}
	return strings.Join(out, " | ")
}

// enumType shows a short list of values, and only that.
func enumType(s *schema) string {
	values := s.list("enum")
	if c, has := s.fields["const"]; has {
		values = []json.RawMessage{c}
	}
	if len(values) == 0 || len(values) > maxAlternates {
		return ""
	}
	var shown []string
	for _, v := range values {
		l := literal(v)
		if l == plain.Ellipsis {
			return ""
		}
		shown = append(shown, l)
	}
	if e := "Literal[" + strings.Join(shown, ", ") + "]"; len(e) <= 50 {
		return e
	}
	return ""
}

// literal writes a JSON value as Python; what is too long or nested is `…`.
func literal(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || len(raw) > 200 {
		return plain.Ellipsis
	}
	switch string(raw) {
	case "null":
		return "None"
	case "true":
		return "True"
	case "false":
		return "False"
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return plain.Ellipsis
		}
		if q := strconv.QuoteToASCII(s); len(q) <= 32 {
			return q
		}
	case '[':
		var l []json.RawMessage
		if json.Unmarshal(raw, &l) == nil && len(l) == 0 {
			return "[]"
		}
	case '{':
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) == nil && len(m) == 0 {
			return "{}"
		}
	default:
		var n json.Number
		if len(raw) <= 24 && json.Unmarshal(raw, &n) == nil {
			return n.String()
		}
	}
	return plain.Ellipsis
}
