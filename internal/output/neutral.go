package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// NeutralWriter passes text on with everything that could drive a terminal or
// reorder what is read on it made visible: escape sequences, control characters,
// invisible direction marks. Newline, tab and a carriage return before a newline
// pass as they are.
//
// It is used by one goroutine at a time. Close shows what was held back (the first
// bytes of an unfinished character, a last carriage return) and does not close
// what is beneath.
type NeutralWriter struct {
	w     io.Writer
	out   []byte
	carry [utf8.UTFMax]byte
	held  int
	cr    bool // a carriage return whose next byte has not come yet
}

// Neutral makes a NeutralWriter in front of w.
func Neutral(w io.Writer) *NeutralWriter { return &NeutralWriter{w: w} }

// NeutralString gives s as a NeutralWriter would show it: for names, titles and
// error texts.
func NeutralString(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	n := Neutral(&b)
	_, _ = io.WriteString(n, s) // a Builder takes everything
	_ = n.Close()
	return b.String()
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// chunk bounds the memory that one Write takes: a byte grows to at most 10.
const chunk = 16 << 10

// Write reports len(p) unless what is beneath fails.
func (n *NeutralWriter) Write(p []byte) (int, error) {
	for done := 0; done < len(p); done += chunk {
		part := p[done:min(done+chunk, len(p))]
		n.out = n.out[:0]
		n.feed(part)
		if len(n.out) == 0 {
			continue
		}
		if _, err := n.w.Write(n.out); err != nil {
			return done, err
		}
	}
	return len(p), nil
}

// Close shows what was held back.
func (n *NeutralWriter) Close() error {
	n.out = n.out[:0]
	for _, b := range n.carry[:n.held] {
		n.showByte(b)
	}
	n.held = 0
	n.settle(0)
	if len(n.out) == 0 {
		return nil
	}
	_, err := n.w.Write(n.out)
	return err
}

func (n *NeutralWriter) feed(p []byte) {
	// Complete the character that the last Write ended in, one byte at a time: it
	// may turn out to be none.
	for n.held > 0 && len(p) > 0 {
		n.carry[n.held] = p[0]
		head := n.carry[:n.held+1]
		r, size := utf8.DecodeRune(head)
		switch {
		case size > 1: // complete
			n.showRune(r, head)
			n.held, p = 0, p[1:]
		case !utf8.FullRune(head): // still unfinished
			n.held, p = n.held+1, p[1:]
		default: // p[0] does not continue it
			for _, b := range n.carry[:n.held] {
				n.showByte(b)
			}
			n.held = 0
		}
	}
	for len(p) > 0 {
		if b := p[0]; b < utf8.RuneSelf {
			n.showASCII(b)
			p = p[1:]
			continue
		}
		r, size := utf8.DecodeRune(p)
		if r == utf8.RuneError && size == 1 {
			if !utf8.FullRune(p) {
				n.settle(0)
				n.held = copy(n.carry[:], p)
				return
			}
			n.showByte(p[0])
			p = p[1:]
			continue
		}
		n.showRune(r, p[:size])
		p = p[size:]
	}
}

// settle decides about a held carriage return now that next is known.
func (n *NeutralWriter) settle(next byte) {
	if !n.cr {
		return
	}
	n.cr = false
	if next == '\n' {
		n.out = append(n.out, '\r')
	} else {
		n.out = append(n.out, "␍"...)
	}
}

func (n *NeutralWriter) showASCII(b byte) {
	n.settle(b)
	switch {
	case b == '\r':
		n.cr = true
	case b == 0x7f:
		n.out = append(n.out, "␡"...)
	case b < 0x20 && b != '\n' && b != '\t':
		n.out = utf8.AppendRune(n.out, 0x2400+rune(b)) // the picture of the control character: ␛
	default:
		n.out = append(n.out, b)
	}
}

// showByte shows a byte that belongs to no character.
func (n *NeutralWriter) showByte(b byte) {
	n.settle(0)
	n.out = fmt.Appendf(n.out, `\x%02x`, b)
}

func (n *NeutralWriter) showRune(r rune, raw []byte) {
	n.settle(0)
	switch {
	case !hidden(r):
		n.out = append(n.out, raw...)
	case r > 0xffff:
		n.out = fmt.Appendf(n.out, `\U%08x`, r)
	default:
		n.out = fmt.Appendf(n.out, `\u%04x`, r)
	}
}

// hidden tells which characters beyond ASCII act without being seen.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f, // C1: 0x9b begins a sequence on some terminals
		r == 0x061c, r == 0x200e, r == 0x200f, // direction marks
		r >= 0x202a && r <= 0x202e, // embedding and override
		r >= 0x2066 && r <= 0x206f, // isolates, deprecated format characters
		r == 0x2028, r == 0x2029,   // line and paragraph separator
		r >= 0xfff9 && r <= 0xfffb,   // interlinear annotation
		r >= 0xe0000 && r <= 0xe007f: // tags: text that no person sees
		return true
	}
	return false
}
