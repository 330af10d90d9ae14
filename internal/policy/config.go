package policy

import (
	"fmt"
	"strings"

	"github.com/belljar/belljar"
)

// DefaultMaxCalls is how many calls one run may make when nothing is configured.
const DefaultMaxCalls = 1000

// Config is what the operator says about tools. The zero value is the documented
// default: the curated set, nothing denied, 1000 calls a run.
type Config struct {
	// Tools replaces the curated set and is then a ceiling for every request.
	Tools []string `toml:"tools"`
	// ExtraTools adds to the curated set or to Tools.
	ExtraTools []string `toml:"extra_tools"`
	// Deny disables tools for everybody. "*" in an entry stands for any text. The
	// names execute_code and run_snippet disable the runs themselves.
	Deny []string `toml:"deny"`
	// MaxCallsPerRun bounds the tool calls of one run. 0: DefaultMaxCalls.
	MaxCallsPerRun int `toml:"max_calls_per_run"`
}

// problems lists everything that is wrong with c. A list that is half understood
// would protect half, so all of these are errors and none a warning.
func (c Config) problems() []string {
	var out []string
	check := func(list string, names []string, globs bool) {
		for i, name := range names {
			switch {
			case strings.TrimSpace(name) == "":
				out = append(out, fmt.Sprintf("policy.%s: entry %d is empty", list, i+1))
			case strings.TrimSpace(name) != name:
				out = append(out, fmt.Sprintf("policy.%s: '%s' begins or ends with a space", list, show(name)))
			case strings.ContainsAny(name, `?[]\`):
				out = append(out, fmt.Sprintf("policy.%s: '%s' is no tool name: of the pattern characters only * is known, and only in policy.deny", list, show(name)))
			case !globs && strings.Contains(name, "*"):
				out = append(out, fmt.Sprintf("policy.%s: '%s': patterns are only understood in policy.deny, name the tools here", list, show(name)))
			}
		}
	}
	check("tools", c.Tools, false)
	check("extra_tools", c.ExtraTools, false)
	check("deny", c.Deny, true)
	if c.MaxCallsPerRun < 0 {
		out = append(out, fmt.Sprintf("policy.max_calls_per_run: %d is negative", c.MaxCallsPerRun))
	}
	return out
}

// Checks tells doctor about entries that do nothing. They are no errors, since
// the never-bridged set and the deny list win by design, but they are surprises.
func (p *Policy) Checks() []belljar.Check {
	var idle []string
	for _, list := range []struct {
		key   string
		names []string
	}{{"tools", p.cfg.Tools}, {"extra_tools", p.cfg.ExtraTools}} {
		for _, name := range list.names {
			switch {
			case never.has(name):
				idle = append(idle, fmt.Sprintf("policy.%s: '%s' is never bridged", list.key, name))
			case p.denied(name):
				idle = append(idle, fmt.Sprintf("policy.%s: '%s' is disabled by policy.deny", list.key, name))
			}
		}
	}
	if len(idle) == 0 {
		return []belljar.Check{{Name: "policy", State: belljar.CheckOK, Meaning: p.describe()}}
	}
	return []belljar.Check{{
		Name: "policy", State: belljar.CheckWarn,
		Meaning: p.describe() + " Without effect: " + strings.Join(idle, "; ") + ".",
		Remedy:  "Remove these entries, or the deny entries that cover them.",
	}}
}

func (p *Policy) describe() string {
	base := "scripts reach the curated tools"
	if p.ceiling {
		base = fmt.Sprintf("scripts reach the %d tools of policy.tools", len(p.cfg.Tools))
	}
	return fmt.Sprintf("%s and %d extra; %d deny entries; %d calls a run.",
		strings.ToUpper(base[:1])+base[1:], len(p.cfg.ExtraTools), len(p.cfg.Deny), p.maxCalls)
}
