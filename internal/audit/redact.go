package audit

import (
	"encoding/json"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	redacted     = "[redacted]"
	minSecret    = 6    // bytes; shorter ones match by chance
	maxSummary   = 200  // characters of Record.Summary
	maxArgs      = 4096 // bytes of Record.Args, about: closing brackets come on top
	maxField     = 200  // characters of the other texts of a record
	edge         = 256  // bytes by which any shape is known for what it is
	slack        = 2 * edge
	maxKeysKnown = 1024 // keys whose verdict is remembered; scripts choose them
)

// shapes are tokens that give themselves away. Each alternative that keeps a part
// has it in a group.
var shapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`(?s:-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z))`,
		`((?i:\b(?:bearer|basic)\s+))[A-Za-z0-9._~+/=-]{8,}`,
		`(://)[^\s/:@"']*:[^\s/@"']+(@)`, // user and password in an address
		`\bsk-[A-Za-z0-9_-]{16,}`,
		`\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}`,
		`\bgh[pousr]_[A-Za-z0-9]{16,}`,
		`\bgithub_pat_[A-Za-z0-9_]{20,}`,
		`\bglpat-[A-Za-z0-9_-]{16,}`,
		`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`,
		`\bAIza[A-Za-z0-9_-]{30,}`,
		`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`,
		`\bnpm_[A-Za-z0-9]{30,}`,
		`\bhf_[A-Za-z0-9]{30,}`,
		`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*`, // JSON web token
	}, "|"))
})

// hints are what a text must contain for shapes to be worth asking; most texts
// contain none.
var hints = [...]string{"-----BEGIN", "earer", "EARER", "asic", "ASIC", "://", "sk-", "k_live_", "k_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
	"github_pat_", "glpat-", "AKIA", "ASIA", "AIza", "xox", "npm_", "hf_", "eyJ"}

// Redactor takes secrets out of what is recorded. Its expressions are compiled
// when the first text needs them. It may be used by many goroutines at once.
type Redactor struct {
	secrets *strings.Replacer // nil: none
	longest int               // bytes of the longest secret

	keyPattern string // empty: no key is secret
	keys       func() *regexp.Regexp

	mu    sync.Mutex
	known map[string]bool // verdicts on keys
}

// Redactor makes the Redactor of c. The error is a *belljar.Refusal.
func (c Config) Redactor() (*Redactor, error) {
	pattern, err := c.keyPattern()
	if err != nil {
		return nil, err
	}
	r := &Redactor{keyPattern: pattern, known: make(map[string]bool)}
	r.keys = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	forms := secretForms(c.Secrets)
	if len(forms) > 0 {
		replace := make([]string, 0, 2*len(forms))
		for _, f := range forms {
			replace = append(replace, f, redacted)
			r.longest = max(r.longest, len(f))
		}
		r.secrets = strings.NewReplacer(replace...)
	}
	return r, nil
}

// secretForms lists the secrets as they may appear in a text (as they are, inside
// a JSON string, inside an address), longest first so that a secret which begins
// with another one is taken whole.
func secretForms(secrets []string) []string {
	var out []string
	for _, s := range secrets {
		trimmed := strings.TrimSpace(s)
		if len(trimmed) < minSecret {
			continue
		}
		escaped, _ := json.Marshal(trimmed) // a string always has a JSON form
		ours, _ := appendEscaped(nil, trimmed, math.MaxInt)
		out = append(out, trimmed, oneLine(trimmed), string(escaped[1:len(escaped)-1]), string(ours),
			url.QueryEscape(trimmed), url.PathEscape(trimmed))
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out)
}

// Text takes secrets out of a text.
func (r *Redactor) Text(s string) string {
	if r.secrets != nil {
		s = r.secrets.Replace(s)
	}
	if slices.ContainsFunc(hints[:], func(h string) bool { return strings.Contains(s, h) }) {
		s = shapes().ReplaceAllString(s, "${1}${2}"+redacted+"${3}")
	}
	return r.pairs(s)
}

// Summary makes one line of at most 200 characters of a text, redacted. Control
// and formatting characters are kept out: the line is shown on terminals.
func (r *Redactor) Summary(s string) string {
	raw, cut := r.window(s, 4*maxSummary)
	if !cut {
		if doc, ok := r.json(raw, 4*maxSummary); ok {
			return firstRunes(oneLine(doc), maxSummary)
		}
	}
	out := r.Text(oneLine(raw))
	if cut {
		out = r.dropEdge(out)
	}
	return firstRunes(out, maxSummary)
}

// Args makes what is recorded of arguments: JSON again, with the values of secret
// keys and what looks like a secret replaced, and cut to about 4 KiB with a mark.
// What is no JSON is recorded as a JSON string.
func (r *Redactor) Args(s string) string {
	if s == "" {
		return ""
	}
	if out, ok := r.json(s, maxArgs); ok {
		return out
	}
	return string(r.quote(nil, s, maxArgs))
}

// secretKey reports whether values under this key are left out.
func (r *Redactor) secretKey(key string) bool {
	if r.keyPattern == "" {
		return false
	}
	r.mu.Lock()
	verdict, ok := r.known[key]
	r.mu.Unlock()
	if ok {
		return verdict
	}
	verdict = r.keys().MatchString(key)
	if len(key) > 64 {
		return verdict
	}
	r.mu.Lock()
	if len(r.known) < maxKeysKnown {
		r.known[key] = verdict
	}
	r.mu.Unlock()
	return verdict
}

// window is the part of a text that is looked at when about its first n bytes are
// kept: long enough that a secret which reaches into them is known for what it is.
func (r *Redactor) window(s string, n int) (part string, cut bool) {
	n += slack + r.longest
	if len(s) <= n {
		return s, false
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], true
}

// quote appends a text as a JSON string of at most about n bytes, redacted, with a
// mark when it is cut.
func (r *Redactor) quote(out []byte, s string, n int) []byte {
	raw, cut := r.window(s, n)
	text := r.Text(raw)
	if cut {
		text = r.dropEdge(text)
	}
	out = append(out, '"')
	out, whole := appendEscaped(out, text, n)
	if cut || !whole {
		out = append(out, cutMark(len(s))...)
	}
	return append(out, '"')
}

// dropEdge takes away the end of a window's text, where a secret may begin that
// could not be known for what it is. Without a secret in the window at least the
// wanted part remains.
func (r *Redactor) dropEdge(s string) string {
	n := max(len(s)-edge-r.longest, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// oneLine turns line breaks, tabs and other control characters into single spaces
// and drops what changes how a line is displayed (direction marks, zero width).
func oneLine(s string) string {
	if isOneLine(s) {
		return s
	}
	out := make([]byte, 0, len(s))
	space := true // at the beginning none is wanted
	for _, c := range s {
		switch {
		case c > 0x20 && c < 0x7f:
			out = append(out, byte(c))
			space = false
		case unicode.IsSpace(c) || unicode.IsControl(c):
			if !space {
				out = append(out, ' ')
			}
			space = true
		case unicode.IsGraphic(c):
			out = utf8.AppendRune(out, c) // U+FFFD for what is no UTF-8
			space = false
		}
	}
	if n := len(out); n > 0 && space {
		out = out[:n-1]
	}
	return string(out)
}

// isOneLine is true for most names and many answers: printable ASCII with single
// spaces between words.
func isOneLine(s string) bool {
	last := byte(' ')
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == ' ' && last == ' ' {
			return false
		}
		last = s[i]
	}
	return last != ' ' || s == ""
}

// firstRunes cuts a text after n characters.
func firstRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
