package cases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belljar/belljar"
)

// Expect is what must come of a case:
//
//	stage(_any), outcome(_any), not_outcome, exit_code(_not), signal(_any)
//	                 how it ended; outcomes are the keys of statuses
//	stdout_contains, stdout_not_contains, stdout_exact, stderr_contains,
//	stderr_not_contains, last_stdout_contains
//	valid_utf8       what came is text, whatever the program wrote
//	truncated        the output is cut, and that is marked
//	within_ms        time until the answer, used as a guard against hanging only
//	min_ms           least time until the answer
//	artifacts        name to content, or to a word of artifactWords
//	audit            what the journal holds
//	after            what is true a moment later, a key of afterwards
//	alt              another outcome that is as good
//	must_not         a key of harms
//	note             for readers
type Expect struct {
	Stage              string            `json:"stage"`
	StageAny           []string          `json:"stage_any"`
	Outcome            string            `json:"outcome"`
	OutcomeAny         []string          `json:"outcome_any"`
	NotOutcome         []string          `json:"not_outcome"`
	ExitCode           *int              `json:"exit_code"`
	ExitCodeNot        *int              `json:"exit_code_not"`
	Signal             *int              `json:"signal"`
	SignalAny          []int             `json:"signal_any"`
	StdoutContains     []string          `json:"stdout_contains"`
	StdoutNotContains  []string          `json:"stdout_not_contains"`
	StdoutExact        *string           `json:"stdout_exact"`
	StderrContains     []string          `json:"stderr_contains"`
	StderrNotContains  []string          `json:"stderr_not_contains"`
	LastStdoutContains []string          `json:"last_stdout_contains"`
	ValidUTF8          bool              `json:"valid_utf8"`
	Truncated          bool              `json:"truncated"`
	WithinMS           int64             `json:"within_ms"`
	MinMS              int64             `json:"min_ms"`
	Artifacts          map[string]string `json:"artifacts"`
	Audit              *Audit            `json:"audit"`
	After              string            `json:"after"`
	Alt                *Alternative      `json:"alt"`
	MustNot            []string          `json:"must_not"`
	Note               string            `json:"note"`
}

// Audit is what the journal must hold about the run.
type Audit struct {
	ToolCalls       *int           `json:"tool_calls"`
	Denied          *int           `json:"denied"`
	ToolCallsByName map[string]int `json:"tool_calls_by_name"`
}

// Alternative is another acceptable result.
type Alternative struct {
	Outcome string `json:"outcome"`
	Why     string `json:"why"`
}

// statuses says which statuses an outcome may show as. Limits without a status of
// their own are denials.
var statuses = map[string][]belljar.Status{
	"exited":          {belljar.StatusExited},
	"signalled":       {belljar.StatusSignalled},
	"timeout":         {belljar.StatusTimedOut},
	"memory":          {belljar.StatusOutOfMemory},
	"output":          {belljar.StatusOutputLimit},
	"refused":         {belljar.StatusRefused},
	"failed":          {belljar.StatusFailed},
	"disk":            {belljar.StatusExited, belljar.StatusSignalled},
	"processes":       {belljar.StatusExited, belljar.StatusSignalled},
	"compile_error":   {belljar.StatusExited, belljar.StatusSignalled, belljar.StatusOutputLimit},
	"compile_timeout": {belljar.StatusTimedOut},
	"compile_memory":  {belljar.StatusOutOfMemory},
}

// is tells whether a result is the outcome of that name.
func is(outcome string, res *belljar.Result) bool {
	if !slices.Contains(statuses[outcome], res.Status) {
		return false
	}
	switch outcome {
	case "disk", "processes":
		return slices.ContainsFunc(res.Denials, func(d belljar.Denial) bool { return d.Kind == "limit" && strings.Contains(d.What, outcome) })
	case "refused", "failed":
		return true
	}
	return strings.HasPrefix(outcome, "compile_") == (res.Stage == belljar.StageCompile)
}

var stages = []string{"admission", "screening", "toolchain", "compile", "run"}

// check says which word of an expectation is unknown, or that nothing is expected.
func (e *Expect) check() error {
	for _, s := range append(slices.Clone(e.StageAny), e.Stage) {
		if s != "" && !slices.Contains(stages, s) {
			return fmt.Errorf("stage %q", s)
		}
	}
	outcomes := append(slices.Concat(e.OutcomeAny, e.NotOutcome), e.Outcome)
	if e.Alt != nil {
		outcomes = append(outcomes, e.Alt.Outcome)
	}
	for _, o := range outcomes {
		if _, ok := statuses[o]; o != "" && !ok {
			return fmt.Errorf("outcome %q", o)
		}
	}
	for _, m := range e.MustNot {
		if _, ok := harms[m]; !ok {
			return fmt.Errorf("must_not %q", m)
		}
	}
	if _, ok := afterwards[e.After]; e.After != "" && !ok {
		return fmt.Errorf("after %q", e.After)
	}
	if e.Outcome == "" && len(e.OutcomeAny) == 0 && len(e.MustNot) == 0 && len(e.LastStdoutContains) == 0 {
		return fmt.Errorf("expects nothing")
	}
	return nil
}
