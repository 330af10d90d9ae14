package toolset

import (
	"slices"
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
