package audit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/belljar/belljar"
)

// Defaults of a zero Config.
const (
	DefaultRetain = "90d"
	DefaultRedact = `(?i)secret|token|password|authorization|api_?key`
)

// Config says where the journal is and what it leaves out. The zero value is the
// documented default.
type Config struct {
	// Path of the journal. Empty: journal.db in [StateDir].
	Path string `toml:"path"`
	// Required says that a run which cannot be recorded is refused. nil: true.
	Required *bool `toml:"required"`
	// Retain is how long records are kept: a number of days ("90d"), a Go duration
	// ("36h"), or "forever". Empty: DefaultRetain.
	Retain string `toml:"retain"`
	// Redact are regular expressions for keys whose values are left out, anywhere
	// in the arguments and in `key: value` and `key=value` of texts. nil:
	// DefaultRedact. They replace the default; tokens known by their shape are left
	// out in any case.
	Redact []string `toml:"redact"`
	// Secrets are values to leave out wherever they occur, such as the ones in the
	// configured environment of upstream servers. Those under 6 bytes are ignored:
	// they would match by chance.
	Secrets []string `toml:"-"`
}

// IsRequired is Required with its default.
func (c Config) IsRequired() bool { return c.Required == nil || *c.Required }

// retain is how long to keep records; 0: for ever.
func (c Config) retain() (time.Duration, error) {
	text := c.Retain
	switch text {
	case "":
		text = DefaultRetain
	case "forever":
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if number, isDays := strings.CutSuffix(text, "d"); isDays {
		var days int64
		days, err = strconv.ParseInt(number, 10, 32)
		d = time.Duration(days) * 24 * time.Hour
		if days > 36500 {
			d = 0 // would overflow, and is for ever as far as anybody can tell
			return d, err
		}
	}
	if err != nil || d < time.Hour {
		return 0, belljar.Refuse(belljar.CodeBadConfig, `Use days ("90d"), at least "1h", or "forever".`,
			"audit.retain: %q is no time to keep records.", c.Retain)
	}
	return d, nil
}

// keyPattern joins the patterns for keys into one expression; empty when there is none.
func (c Config) keyPattern() (string, error) {
	if c.Redact == nil {
		return DefaultRedact, nil
	}
	parts := make([]string, 0, len(c.Redact))
	for _, p := range c.Redact {
		if p == "" {
			return "", belljar.Refuse(belljar.CodeBadConfig, "Remove the entry; it would match every key.", "audit.redact: an entry is empty.")
		}
		if _, err := regexp.Compile(p); err != nil {
			return "", belljar.Refuse(belljar.CodeBadConfig, "Correct the regular expression (Go's RE2 syntax).", "audit.redact: %v.", err)
		}
		parts = append(parts, fmt.Sprintf("(?:%s)", p))
	}
	return strings.Join(parts, "|"), nil
}
