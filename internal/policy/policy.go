package policy

import (
	"slices"
	"strings"

	"github.com/belljar/belljar"
)

// curated are the tools that scripts reach when nothing is configured: they read,
// and what they read stays where the operator pointed them.
var curated = newSet("read_file", "list_dir", "find_files", "search_files", "fetch_url",
	"web_search", "memory_recall", "memory_list", "current_time")

// never are the tools that no script reaches, whatever the configuration: they
// ask a person, or start work that would run outside this run's limits.
var never = newSet("ask_human", "request_user_input", "task", "task_batch", "execute_code", "run_snippet")

func isNever(name string) bool { return never.has(broad(name)) }

// Via says by which way a call came.
type Via string

const (
	ViaDirect Via = "direct" // the agent itself
	ViaScript Via = "script" // a script, over its bridge
)

// Question is one question to the policy: about a tool call, or about starting a
// run when Run is set.
type Question struct {
	Caller string
	// Via is judged as ViaScript, the stricter way, unless it is ViaDirect.
	Via  Via
	Tool string // the name as asked
	// Forms are all names of the tool (belljar.Tool.Forms); nil for unknown ones.
	Forms []string
	Known bool // the toolset has it
	// Selection is Request.Tools; nil: the configured set.
	Selection []string
	// Fence is Request.Fence; nil: none, empty: no tool at all.
	Fence []string
	Calls int64 // calls this run has made already
	Run   belljar.Kind
}

// Answer is what a Decision comes to.
type Answer string

const (
	Allow Answer = "allow"
	Deny  Answer = "deny"
	Ask   Answer = "ask" // a person has to say
)

// Stable codes of a Decision that is not Allow. The first three have the same
// reason text, so that a script cannot tell what exists beyond its reach.
const (
	CodeUnknownTool  = "unknown_tool"  // the toolset has no such tool
	CodeNeverBridged = "never_bridged" // no script may call it
	CodeNotBridged   = "not_bridged"   // it exists, outside the bridged set
	CodeFence        = "fence"         // outside this turn's allowlist
	CodeDisabled     = "disabled"      // on the deny list
	CodeBudget       = "budget"        // the run has used its calls
)

// Decision is the answer. Code, Reason and Hint are empty when it is Allow.
// Reason is fit for whoever asked; Hint is for the person who configures, and
// may name what a script must not learn.
type Decision struct {
	Answer Answer
	Code   string
	Reason string
	Hint   string
}

// Available is false when the tool does not exist for whoever asked. Such a call
// counts as made, but not as denied.
func (d Decision) Available() bool {
	switch d.Code {
	case CodeUnknownTool, CodeNeverBridged, CodeNotBridged:
		return false
	}
	return true
}

// Policy answers questions. It does not change after New and may be used by many
// goroutines at once.
type Policy struct {
	cfg      Config
	bridged  set  // curated or configured, and the extra ones
	ceiling  bool // policy.tools is set: requests only choose within bridged
	deny     []glob
	maxCalls int64
}

// New makes a Policy. The error is a *belljar.Refusal (bad_config) that lists
// every problem of cfg.
func New(cfg Config) (*Policy, error) {
	if found := cfg.problems(); len(found) > 0 {
		return nil, belljar.Refuse(belljar.CodeBadConfig, "Correct the [policy] section of the configuration.",
			"The policy cannot be used: %s.", strings.Join(found, "; "))
	}
	cfg.Tools, cfg.ExtraTools, cfg.Deny = slices.Clone(cfg.Tools), slices.Clone(cfg.ExtraTools), slices.Clone(cfg.Deny)
	p := &Policy{cfg: cfg, ceiling: len(cfg.Tools) > 0, maxCalls: int64(cfg.MaxCallsPerRun)}
	if p.maxCalls == 0 {
		p.maxCalls = DefaultMaxCalls
	}
	p.bridged = make(set)
	if !p.ceiling {
		for name := range curated {
			p.bridged[name] = struct{}{}
		}
	}
	for _, name := range slices.Concat(cfg.Tools, cfg.ExtraTools) {
		p.bridged[normalise(name)] = struct{}{}
	}
	for _, pattern := range cfg.Deny {
		p.deny = append(p.deny, newGlob(pattern))
	}
	return p, nil
}

// Decide answers one question. The order of the steps is part of the contract:
// what does not exist for the asker is said to be not available before anything
// else could confirm that it does, and what counts calls comes last, so that only
// calls which would run are counted.
func (p *Policy) Decide(q Question) Decision {
	if q.Run != "" {
		return p.decideRun(q.Run)
	}
	for _, step := range [...]func(*Policy, *Question, names) Decision{
		(*Policy).reach,
		(*Policy).fence,
		(*Policy).disabled,
		(*Policy).budget,
	} {
		if d := step(p, &q, names{q.Tool, q.Forms}); d.Answer != Allow {
			return d
		}
	}
	return Decision{Answer: Allow}
}

// Offered returns the tools that a script of a run with this selection and fence
// may call, sorted by name: what a description lists and what resolves in the
// script. It asks the same steps as Decide, so the two cannot disagree.
func (p *Policy) Offered(all []belljar.Tool, selection, fence []string) []belljar.Tool {
	out := make([]belljar.Tool, 0, len(all))
	for _, t := range all {
		d := p.Decide(Question{Via: ViaScript, Tool: t.Name, Forms: t.Forms, Known: true, Selection: selection, Fence: fence})
		if d.Answer != Deny {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b belljar.Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// decideRun answers for a run as a whole. The fence restricts tools, not runs.
func (p *Policy) decideRun(kind belljar.Kind) Decision {
	var name string
	switch kind {
	case belljar.KindScript:
		name = "execute_code"
	case belljar.KindSnippet:
		name = "run_snippet"
	default:
		return unavailable(CodeUnknownTool, string(kind), hintRun)
	}
	if p.denied(name) {
		return disabled(name)
	}
	return Decision{Answer: Allow}
}

// reach answers whether the tool exists for the asker.
func (p *Policy) reach(q *Question, n names) Decision {
	script := q.Via != ViaDirect
	switch {
	case script && n.any(isNever):
		return unavailable(CodeNeverBridged, q.Tool, hintNever)
	case !q.Known:
		return unavailable(CodeUnknownTool, q.Tool, hintUnknown)
	case !script:
		return Decision{Answer: Allow}
	case q.Selection != nil && !n.in(q.Selection):
		return unavailable(CodeNotBridged, q.Tool, hintSelection)
	case q.Selection != nil && !p.ceiling:
		return Decision{Answer: Allow}
	case !n.granted(p.bridged.has):
		if p.ceiling && q.Selection != nil {
			return unavailable(CodeNotBridged, q.Tool, hintCeiling)
		}
		return unavailable(CodeNotBridged, q.Tool, hintExtra)
	}
	return Decision{Answer: Allow}
}

func (p *Policy) fence(q *Question, n names) Decision {
	if q.Fence == nil || n.in(q.Fence) {
		return Decision{Answer: Allow}
	}
	return fenced(q.Tool, q.Fence)
}

func (p *Policy) disabled(q *Question, n names) Decision {
	if n.any(p.denied) {
		return disabled(q.Tool)
	}
	return Decision{Answer: Allow}
}

func (p *Policy) budget(q *Question, _ names) Decision {
	if q.Calls < p.maxCalls {
		return Decision{Answer: Allow}
	}
	return overBudget(p.maxCalls)
}

func (p *Policy) denied(name string) bool {
	return slices.ContainsFunc(p.deny, func(g glob) bool { return g.match(name) })
}
