package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reasons are read by models and people and are the same for a direct and for a
// bridged call. Names in them may come from a run, so they are shown cut and
// without control characters.

const (
	maxFenceShown = 12 // names of a fence in a reason; the rest is ", …"
	maxNameShown  = 80 // characters of one name
)

const (
	hintUnknown   = "Call only tools that are listed for this run."
	hintRun       = "A run is a script or a snippet."
	hintNever     = "No script may call this tool; call it directly."
	hintExtra     = "To let scripts call it, add it to policy.extra_tools in the configuration."
	hintSelection = "The request's own list of tools leaves it out; add it there."
	hintCeiling   = "policy.tools is set, so a request can only choose among its tools; add it to policy.extra_tools in the configuration."
	hintFence     = "The caller set this turn's allowlist; ask it to add the tool."
	hintDisabled  = "The operator disabled it: see policy.deny in the configuration."
	hintBudget    = "Do more with each call, or raise policy.max_calls_per_run in the configuration."
)

func unavailable(code, tool, hint string) Decision {
	return Decision{Deny, code, fmt.Sprintf("tool '%s' not available", show(tool)), hint}
}

func fenced(tool string, fence []string) Decision {
	return Decision{Deny, CodeFence, fmt.Sprintf(
		"Blocked by policy: tool '%s' is outside this turn's tool allowlist (%s) — work within the allowed tools.",
		show(tool), list(fence)), hintFence}
}

func disabled(tool string) Decision {
	return Decision{Deny, CodeDisabled, fmt.Sprintf("Blocked by policy: Tool '%s' is disabled by policy.", show(tool)), hintDisabled}
}

func overBudget(limit int64) Decision {
	return Decision{Deny, CodeBudget, fmt.Sprintf("Blocked by policy: this run has used its %d tool calls.", limit), hintBudget}
}

// list renders a fence: sorted, each name once, "(none)" for an empty one.
func list(names []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	if len(sorted) == 0 {
		return "none"
	}
	more := len(sorted) > maxFenceShown
	if more {
		sorted = sorted[:maxFenceShown]
	}
	shown := make([]string, len(sorted))
	for i, n := range sorted {
		shown[i] = show(n)
	}
	out := strings.Join(shown, ", ")
	if more {
		out += ", …"
	}
	return out
}

// show makes a name fit for a sentence: one line, valid UTF-8, bounded.
func show(name string) string {
	clean := true
	for i := 0; i < len(name) && clean; i++ {
		clean = name[i] >= 0x20 && name[i] < 0x7f
	}
	if clean && len(name) <= maxNameShown {
		return name
	}
	var b strings.Builder
	n := 0
	for _, r := range name {
		if n == maxNameShown {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
