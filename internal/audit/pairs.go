package audit

import "strings"

// pairs replaces the value in `key: value` and `key=value` where the key is a
// secret one: the first lines of a .env file or a header are an ordinary answer of
// a tool. It looks from each sign to both sides instead of running an expression
// over the text, since nearly all text has no such key.
func (r *Redactor) pairs(s string) string {
	if r.keyPattern == "" {
		return s
	}
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s); i++ {
		if s[i] != ':' && s[i] != '=' {
			continue
		}
		key := keyBefore(s[copied:i])
		if key == "" || !r.secretKey(key) {
			continue
		}
		start, end := valueAfter(s, i+1)
		if start == end || strings.HasPrefix(s[start:], redacted) {
			continue
		}
		b.WriteString(s[copied:start])
		b.WriteString(redacted)
		copied = end
		i = end - 1
	}
	if copied == 0 {
		return s
	}
	b.WriteString(s[copied:])
	return b.String()
}

// keyBefore is the word at the end of s, before spaces and a closing quote.
func keyBefore(s string) string {
	s = strings.TrimRight(s, " \t")
	s = strings.TrimRight(s, "\"'`")
	start := len(s)
	for start > 0 && len(s)-start < 64 && isKeyByte(s[start-1]) {
		start--
	}
	return s[start:]
}

func isKeyByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// valueAfter finds the value that follows a sign: a quoted text, or a word with
// the scheme of an Authorization header before it.
func valueAfter(s string, i int) (start, end int) {
	for i < len(s) && strings.IndexByte("=:> \t", s[i]) >= 0 {
		i++
	}
	start = i
	if i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '`') {
		for end = i + 1; end < len(s); end++ {
			switch s[end] {
			case '\\':
				end++
			case s[i]:
				return start, end + 1
			}
		}
		return start, len(s)
	}
	for _, scheme := range []string{"bearer ", "basic ", "token "} {
		if len(s)-i > len(scheme) && strings.EqualFold(s[i:i+len(scheme)], scheme) {
			i += len(scheme)
			break
		}
	}
	// A password may hold any sign, so only a space ends it: better to lose what
	// follows than to keep its tail.
	n := strings.IndexAny(s[i:], " \t\r\n")
	if n < 0 {
		return start, len(s)
	}
	return start, i + n
}
