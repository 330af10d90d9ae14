package plain

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ellipsis marks a cut.
const Ellipsis = "…"

// Clean drops control and format characters (except line feed and tab) and
// invalid UTF-8, turns the other line breaks into line feeds, and cuts the
// result to at most max bytes, the ellipsis included.
func Clean(s string, max int) string {
	// Looking at more than this cannot change the answer, unless nearly all of
	// it is dropped, and then the answer is worth little.
	if len(s) > 8*max {
		s = s[:8*max]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, s)
	return Cut(s, max)
}

// Line is Clean on one line: runs of white space become one space.
func Line(s string, max int) string {
	if len(s) > 8*max {
		s = s[:8*max]
	}
	return Cut(strings.Join(strings.Fields(Clean(s, 8*max)), " "), max)
}

// Cut shortens s to at most max bytes, on a character boundary and with an
// ellipsis when something was left out.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max - len(Ellipsis)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + Ellipsis
}

// Quote puts s into single quotes for a message, escaping what would not print
// and cutting it to about 200 bytes.
func Quote(s string) string {
	q := strconv.Quote(Cut(s, 200))
	q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
	return "'" + strings.ReplaceAll(q, "'", `\'`) + "'"
}
