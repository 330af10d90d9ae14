package toolset

import (
	"fmt"
	"strings"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// An expander replaces ${VAR} in configured texts. It keeps the first error and
// every value it used, for those are likely secrets.
type expander struct {
	getenv func(string) (string, bool)
	used   []string
	err    error
}

// expand replaces ${VAR}, ${env:VAR} and ${VAR:-text}. A variable that is not set
// is an error that names it, never an empty text: a server started with an empty
// token fails in ways that nobody understands. A dollar sign without a brace
// stays.
func (x *expander) expand(where, s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			x.fail("%s has a '${' without its '}'", where)
			return ""
		}
		b.WriteString(s[:i])
		b.WriteString(x.value(where, s[i+2:i+end]))
		s = s[i+end+1:]
	}
}

func (x *expander) value(where, expr string) string {
	name, fallback, hasFallback := strings.Cut(expr, ":-")
	name = strings.TrimPrefix(name, "env:")
	if !identifier(name) {
		x.fail("%s: %s is not understood; only variables of the environment, ${NAME}, can be used", where, plain.Quote("${"+expr+"}"))
		return ""
	}
	v, ok := x.getenv(name)
	switch {
	case ok && v != "":
		x.used = append(x.used, v)
		return v
	case hasFallback:
		return fallback
	case !ok:
		x.fail("%s needs the environment variable %s, which is not set", where, name)
	}
	return v
}

func (x *expander) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}
