package audit

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting that is followed; deeper values are replaced.
const maxDepth = 64

// scrubber copies a JSON document with secrets replaced. It works on the bytes in
// one pass and stops when it has written enough, so that 10 MB of arguments cost
// no more than 4 KiB; what it writes is always a complete document.
type scrubber struct {
	r    *Redactor
	in   string
	pos  int
	out  []byte
	max  int
	done bool // enough is written: only brackets are still to be closed
}

// json redacts a document. ok is false when s is none, as far as it was read.
func (r *Redactor) json(s string, limit int) (out string, ok bool) {
	p := scrubber{r: r, in: s, max: limit}
	p.space()
	if p.pos == len(s) || s[p.pos] != '{' && s[p.pos] != '[' {
		return "", false
	}
	if !p.value(0) {
		return "", false
	}
	if p.space(); !p.done && p.pos != len(s) {
		return "", false
	}
	return string(p.out), true
}

func (p *scrubber) space() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

// take reads one byte if it is c.
func (p *scrubber) take(c byte) bool {
	p.space()
	if p.pos < len(p.in) && p.in[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *scrubber) full() bool { return len(p.out) >= p.max }

func (p *scrubber) value(depth int) bool {
	p.space()
	if p.pos == len(p.in) {
		return false
	}
	switch p.in[p.pos] {
	case '{', '[':
		if depth == maxDepth {
			p.out = append(p.out, `"[nested too deeply]"`...)
			return p.skip()
		}
		return p.container(depth)
	case '"':
		s, ok := p.str()
		if ok {
			p.out = p.r.quote(p.out, s, max(p.max-len(p.out), 32))
		}
		return ok
	default:
		lit, ok := p.literal()
		switch {
		case !ok:
		case p.r.secrets != nil && p.r.secrets.Replace(lit) != lit: // a number can be a secret, too
			p.out = append(p.out, `"`+redacted+`"`...)
		default:
			p.out = append(p.out, lit...)
		}
		return ok
	}
}

func (p *scrubber) container(depth int) bool {
	object := p.in[p.pos] == '{'
	end := byte(']')
	if object {
		end = '}'
	}
	p.out = append(p.out, p.in[p.pos])
	p.pos++
	if p.take(end) {
		p.out = append(p.out, end)
		return true
	}
	for first := true; ; first = false {
		if !first {
			p.out = append(p.out, ',')
		}
		if p.full() {
			if object {
				p.out = append(p.out, `"…":`...)
			}
			p.out = append(p.out, `"`+cutMark(len(p.in))+`"`...)
			p.done = true
			break
		}
		if !p.member(object, depth) {
			return false
		}
		if p.done {
			break
		}
		if p.take(end) {
			break
		}
		if !p.take(',') {
			return false
		}
	}
	p.out = append(p.out, end)
	return true
}

// member copies one element, with its key in an object.
func (p *scrubber) member(object bool, depth int) bool {
	if !object {
		return p.value(depth + 1)
	}
	p.space()
	if p.pos == len(p.in) || p.in[p.pos] != '"' {
		return false
	}
	key, ok := p.str()
	if !ok || !p.take(':') {
		return false
	}
	p.out = append(p.r.quote(p.out, key, maxField), ':')
	if p.r.secretKey(key) {
		p.out = append(p.out, `"`+redacted+`"`...)
		return p.skip()
	}
	return p.value(depth + 1)
}

// str reads a string and gives it decoded, so that \u escapes hide nothing.
func (p *scrubber) str() (string, bool) {
	start, escaped := p.pos, false
	for i := start + 1; i < len(p.in); i++ {
		switch c := p.in[i]; {
		case c == '\\':
			escaped = true
			i++
		case c < 0x20:
			return "", false
		case c == '"':
			p.pos = i + 1
			if !escaped {
				return p.in[start+1 : i], true
			}
			var s string
			if json.Unmarshal([]byte(p.in[start:p.pos]), &s) != nil {
				return "", false
			}
			return s, true
		}
	}
	return "", false
}

// literal reads a number, true, false or null.
func (p *scrubber) literal() (string, bool) {
	start := p.pos
	for p.pos < len(p.in) && !strings.ContainsRune(" \t\r\n,:]}[{\"", rune(p.in[p.pos])) {
		p.pos++
	}
	lit := p.in[start:p.pos]
	if len(lit) > 64 { // no number anybody meant; a row of digits may be anything
		return `"[long number]"`, lit[0] == '-' || lit[0] >= '0' && lit[0] <= '9'
	}
	return lit, json.Valid([]byte(lit))
}

// skip passes over one value without writing it, to any depth.
func (p *scrubber) skip() bool {
	depth := 0
	for {
		p.space()
		if p.pos == len(p.in) {
			return false
		}
		switch p.in[p.pos] {
		case '{', '[':
			depth++
			p.pos++
			continue
		case '}', ']':
			depth--
			p.pos++
		case ',', ':':
			p.pos++
			continue
		case '"':
			if _, ok := p.str(); !ok {
				return false
			}
		default:
			if _, ok := p.literal(); !ok {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

func cutMark(of int) string { return "…[cut, " + strconv.Itoa(of) + " bytes in all]" }

// appendEscaped appends s as it stands inside a JSON string, up to about n bytes;
// whole is false when there was more. Unlike json.Marshal it leaves <, > and & as
// they are: the journal is read by people.
func appendEscaped(out []byte, s string, n int) (_ []byte, whole bool) {
	const hex = "0123456789abcdef"
	start := len(out)
	for i := 0; i < len(s); {
		if len(out)-start >= n {
			return out, false
		}
		if c := s[i]; c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				out = append(out, '\\', c)
			case c == '\n':
				out = append(out, '\\', 'n')
			case c == '\t':
				out = append(out, '\\', 't')
			case c < 0x20 || c == 0x7f:
				out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			default:
				out = append(out, c)
			}
			i++
			continue
		}
		c, size := utf8.DecodeRuneInString(s[i:])
		out = utf8.AppendRune(out, c) // U+FFFD for what is no UTF-8
		i += size
	}
	return out, true
}
