package toolset

import (
	"bytes"
	"encoding/json"
	"iter"
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
//	create_entities(entities: list[{name: str, tags?: list[str]}]) -> dict
//
// Required parameters come first, then the optional ones with their defaults. A
// dict whose keys are known shows them, `?` behind those that may be missing; two
// levels deep and as far as the whole fits into 200 characters, else it is `dict`.
// A tool whose schema cannot be read is `name(…)`, and `…` also stands for
// parameters that are left out: those that do not fit and those whose names are no
// identifiers. The result is one line of ASCII but for the ellipsis.
func Signature(t belljar.Tool) string {
	name := showName(t.Name)
	unreadable := name + "(" + plain.Ellipsis + ")"

	list, ok := parseSchema(t.InputSchema).params()
	if !ok {
		return unreadable
	}
	var parts []*part
	skipped := false
	for _, p := range slices.Concat(filter(list, true), filter(list, false)) {
		if !identifier(p.name) || keyword(p.name) || len(p.name) > 60 {
			skipped = true
			continue
		}
		parts = append(parts, newPart(func(objects int) string { return showParam(p, objects) }))
	}
	out := newPart(func(int) string { return "" })
	if s := parseSchema(t.OutputSchema); s != nil {
		out = newPart(func(objects int) string {
			if r := showType(s, objects); r != "" {
				return " -> " + r
			}
			return ""
		})
	}
	for {
		var b strings.Builder
		b.WriteString(name + "(")
		for i, p := range parts {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(p.text)
		}
		if skipped {
			if len(parts) > 0 {
				b.WriteString(", ")
			}
			b.WriteString(plain.Ellipsis)
		}
		b.WriteString(")" + out.text)
		if utf8.RuneCountInString(b.String()) <= maxSignature {
			return b.String()
		}
		// What is answered says less about the call than what is asked, so its
		// inside goes first, then that of the longest parameter.
		if out.shorten() || shortenLongest(parts) {
			continue
		}
		if len(parts) == 0 {
			return unreadable
		}
		parts, skipped = parts[:len(parts)-1], true
	}
}

// A part is one parameter, or the answer: text shows it with so many levels of
// what is inside its objects.
type part struct {
	show    func(objects int) string
	objects int
	text    string
}

func newPart(show func(objects int) string) *part {
	return &part{show: show, objects: maxObjects, text: show(maxObjects)}
}

// shorten shows less of the inside; false when nothing gets shorter by it.
func (p *part) shorten() bool {
	for p.objects > 0 {
		p.objects--
		if text := p.show(p.objects); len(text) < len(p.text) {
			p.text = text
			return true
		}
	}
	return false
}

func shortenLongest(parts []*part) bool {
	order := slices.Clone(parts)
	slices.SortStableFunc(order, func(a, b *part) int { return len(b.text) - len(a.text) })
	return slices.ContainsFunc(order, (*part).shorten)
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

// showType is pythonType as far as it is short enough to be read.
func showType(s *schema, objects int) string {
	for ; objects > 0; objects-- {
		if typ := pythonType(s, 0, objects); len(typ) <= maxSignature {
			return typ
		}
	}
	if typ := pythonType(s, 0, 0); len(typ) <= 60 {
		return typ
	}
	return ""
}

func showParam(p param, objects int) string {
	s := p.name
	typ := showType(p.schema, objects)
	if typ != "" {
		s += ": " + typ
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
