package toolset

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// pythonType names the type of a value; empty when the schema does not say. objects
// is how many levels of objects show their keys.
func pythonType(s *schema, depth, objects int) string {
	if depth > maxTypeDepth {
		return ""
	}
	s = s.deref()
	if e := enumType(s); e != "" {
		return e
	}
	if t := s.types(); len(t) > 0 {
		return union(s, t, depth, objects)
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
			n := pythonType(alt, depth+1, objects)
			if n == "" {
				return ""
			}
			names = append(names, n)
		}
		return join(names, depth > 0)
	}
	if alts := s.list("allOf"); len(alts) == 1 {
		if alt := sub(alts[0], s.root); alt != nil {
			return pythonType(alt, depth+1, objects)
		}
	}
	if _, has := s.fields["properties"]; has {
		return dictType(s, depth, objects)
	}
	return ""
}

// dictType shows the keys of an object in the order of the schema, or is "dict"
// where none are known or no more levels are to be shown.
func dictType(s *schema, depth, objects int) string {
	if objects == 0 || depth >= maxTypeDepth {
		return "dict"
	}
	list, ok := s.params()
	if !ok || len(list) == 0 {
		return "dict"
	}
	var shown []string
	for i, p := range list {
		key := p.name
		if !identifier(key) {
			key = strconv.QuoteToASCII(key)
		}
		if i == maxKeys || len(key) > 60 {
			shown = append(shown, plain.Ellipsis)
			break
		}
		if !p.required {
			key += "?"
		}
		if typ := pythonType(p.schema, depth+1, objects-1); typ != "" {
			key += ": " + typ
		}
		shown = append(shown, key)
	}
	return "{" + strings.Join(shown, ", ") + "}"
}

func union(s *schema, types []string, depth, objects int) string {
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
			names = append(names, dictType(s, depth, objects))
		case "null":
			names = append(names, "None")
		case "array":
			item := ""
			if items := sub(s.fields["items"], s.root); items != nil {
				item = pythonType(items, depth+1, objects)
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
	return join(names, depth > 0)
}

// join makes a union, each of its types once. None goes without saying in an
// optional parameter, as it does in `x: int = None`; inside of a type it is said.
func join(names []string, inside bool) string {
	var out []string
	none := false
	for _, name := range names {
		for n := range alternatives(name) {
			if n == "None" {
				none = true
			} else if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	if none && (inside || len(out) == 0) {
		out = append(out, "None")
	}
	return strings.Join(out, " | ")
}

// alternatives are the types of a union, which are not those of what is in its
// brackets.
func alternatives(union string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from, open, quoted := 0, 0, false
		for i := 0; i < len(union); i++ {
			switch c := union[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '[' || c == '{':
				open++
			case c == ']' || c == '}':
				open--
			case open == 0 && strings.HasPrefix(union[i:], " | "):
				if !yield(union[from:i]) {
					return
				}
				from = i + len(" | ")
				i = from - 1
			}
		}
		yield(union[from:])
	}
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
