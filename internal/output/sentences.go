package output

import "strings"

// Sentences puts problems one below the other, each with its full stop.
func Sentences(problems []string) string {
	var b strings.Builder
	for i, p := range problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		p = strings.TrimSpace(p)
		b.WriteString(p)
		if p != "" && !strings.ContainsRune(".?!", rune(p[len(p)-1])) {
			b.WriteByte('.')
		}
	}
	return b.String()
}
