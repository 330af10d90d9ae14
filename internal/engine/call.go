package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/policy"
)

// Outcomes of a call in the journal and the metrics.
const (
	outcomeOK     = "ok"
	outcomeError  = "error"
	outcomeDenied = "denied"
	outcomeCutOff = "cut_off" // the run or the caller was gone before the answer
)

// Codes of a ToolError that come from here.
const (
	codeFailed  = "failed"
	codeCutOff  = "cut_off"
	codeConsent = "consent_nobody"
	codeAudit   = "audit_unavailable"
)

// Call is one tool call, whoever makes it.
type Call struct {
	Run, Session, Caller string
	Via                  policy.Via
	Tool                 string
	Args                 json.RawMessage
	// Selection and Fence are those of the turn (Request.Tools, Request.Fence).
	Selection, Fence []string
	Made             int64 // calls that the run has made before this one
}

// CallTool decides about one call, makes it when it may be made, and leaves one
// record and one metric whatever comes of it. Its error is a [*belljar.ToolError].
// A call whose record the journal does not take fails, where records are required.
func (e *Engine) CallTool(ctx context.Context, c Call) (belljar.Value, error) {
	made, err := e.call(ctx, c, true)
	return made.value, err
}

// ending is how a call ended, beside its error.
type ending struct {
	value   belljar.Value
	outcome string
	refused bool // policy said no, so nothing was called
}

// call is CallTool; it also tells the ending. record is false where it is known
// and accepted that the journal takes nothing.
func (e *Engine) call(ctx context.Context, c Call, record bool) (ending, error) {
	var (
		value   belljar.Value
		outcome string
		refused bool
		err     error
	)
	begin := time.Now()
	label := "" // until it is known to be a tool's name
	func() {
		defer func() {
			if p := recover(); p != nil {
				err = e.callFault(c, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		var tool belljar.Tool
		var known bool
		if tool, known = e.parts.Tools.Find(ctx, c.Tool); known {
			label = tool.Name
		}
		d := e.parts.Policy.Decide(policy.Question{Caller: c.Caller, Via: c.Via, Tool: c.Tool, Forms: tool.Forms, Known: known,
			Selection: c.Selection, Fence: c.Fence, Calls: c.Made})
		refused = d.Answer != policy.Allow
		switch d.Answer {
		case policy.Allow:
			value, err = e.parts.Tools.Call(ctx, c.Tool, c.Args)
		case policy.Ask:
			err = &belljar.ToolError{Tool: c.Tool, Denied: true, Code: codeConsent,
				Reason: fmt.Sprintf("tool '%s' needs a person's consent, and nobody can be asked here", cut(c.Tool, 80))}
		default:
			err = &belljar.ToolError{Tool: c.Tool, Denied: d.Available(), Code: d.Code, Reason: d.Reason}
		}
	}()
	failure := e.toolError(ctx, c, err)
	switch {
	case failure == nil:
		outcome = outcomeOK
	case failure.Code == codeCutOff:
		outcome = outcomeCutOff
	case failure.Denied:
		outcome = outcomeDenied
	default:
		outcome = outcomeError
	}
	took := time.Since(begin)
	if record {
		if err := e.recordCall(context.WithoutCancel(ctx), c, value, failure, outcome, begin, took); err != nil {
			e.log.Error("call is not recorded", "run", c.Run, "tool", c.Tool, "err", err)
			if !e.cfg.AuditOptional {
				outcome = outcomeError
				failure = &belljar.ToolError{Tool: c.Tool, Code: codeAudit, Reason: "the call could not be recorded, so its answer is withheld"}
			}
		}
	}
	e.parts.Metrics.Call(label, outcome, took)
	if failure != nil {
		return ending{outcome: outcome, refused: refused}, failure
	}
	return ending{value: value, outcome: outcome}, nil
}

// toolError makes any error of a call one that a script may be told. An answer that
// came after its caller was gone is no answer.
func (e *Engine) toolError(ctx context.Context, c Call, err error) *belljar.ToolError {
	own, ok := errors.AsType[*belljar.ToolError](err)
	switch {
	case ok && own.Denied:
		return own
	case ctx.Err() != nil:
		return &belljar.ToolError{Tool: c.Tool, Code: codeCutOff, Reason: "the run ended before the tool answered"}
	case err == nil:
		return nil
	case ok:
		return own
	}
	return e.callFault(c, err)
}

// callFault logs what went wrong in our own part of a call.
func (e *Engine) callFault(c Call, err error) *belljar.ToolError {
	id := newID("fault_")
	e.log.Error("call failed", "fault", id, "run", c.Run, "tool", c.Tool, "err", err)
	return &belljar.ToolError{Tool: c.Tool, Code: codeFailed, Reason: fmt.Sprintf("the tool failed inside (fault %s)", id)}
}

// recordCall appends the record of one call. It is safe once the run's own record
// is.
func (e *Engine) recordCall(ctx context.Context, c Call, value belljar.Value, failure *belljar.ToolError, outcome string, begin time.Time, took time.Duration) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the journal: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	name := cut(c.Tool, 2*maxWord)
	if c.Via != policy.ViaDirect {
		name = "ptc:" + name
	}
	rec := belljar.Record{
		Time: begin, Run: c.Run, Session: session(c.Session), Caller: c.Caller, Event: "call", Name: name,
		Args: string(c.Args), Outcome: outcome, DurationMS: ms(took), OK: failure == nil,
	}
	if failure != nil {
		rec.Code, rec.Summary = failure.Code, cut(failure.Reason, summaryChars)
	} else {
		rec.Summary = valueSummary(value)
	}
	return e.parts.Journal.Append(ctx, rec)
}

// valueSummary shows the beginning of a text; of bytes only what and how many.
func valueSummary(v belljar.Value) string {
	if v.Kind == belljar.ValueBytes {
		return fmt.Sprintf("%d bytes of %s", len(v.Data), cut(v.MediaType, 60))
	}
	head := v.Data[:min(len(v.Data), summaryChars*utf8.UTFMax)]
	return cut(string(head), summaryChars)
}

// Call answers one bridged call of the run. It implements [bridge.Handler].
func (r *run) Call(ctx context.Context, tool string, args json.RawMessage) (belljar.Value, error) {
	begin := time.Now()
	made := r.calls.begin()
	var how ending
	var err error
	if spent := r.calls.spent(); spent != nil {
		how.outcome, err = outcomeDenied, r.refuse(tool, spent)
	} else {
		how, err = r.e.call(ctx, Call{
			Run: r.res.ID, Session: r.req.Session, Caller: r.req.Caller, Via: policy.ViaScript, Tool: tool, Args: args,
			Selection: r.req.Tools, Fence: r.req.Fence, Made: made,
		}, r.unready == nil)
		if how.refused {
			r.calls.refused(err)
		}
	}
	done := belljar.ToolCall{Tool: cut(tool, maxWord), OK: err == nil, MS: ms(time.Since(begin)), Bytes: int64(len(how.value.Data)), Denied: how.outcome == outcomeDenied}
	failure, _ := errors.AsType[*belljar.ToolError](err)
	if failure != nil && failure.Code == codeAudit {
		r.calls.unrecorded.Add(1)
	}
	if how.outcome != outcomeCutOff { // nobody got that answer
		r.calls.end(done)
		r.feed.call(done)
	}
	return how.value, err
}
