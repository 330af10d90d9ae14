package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/policy"
)

// A script can be refused tens of thousands of times a second, and each refusal
// is a record on the host's disk. So only so many of a run are recorded one by
// one, and one record at its end counts the rest.
const (
	maxOverBudget = 100  // calls beyond the budget
	maxRefused    = 1000 // calls refused for any other reason
)

// refusedName names the record that counts the rest, where the others have a tool.
const refusedName = "ptc:(refused)"

// refusals counts what policy refused one run. Past either bound the run has used
// its calls up, whatever they are.
type refusals struct {
	budget atomic.Int64 // refused and recorded: beyond the budget
	other  atomic.Int64 // refused and recorded: anything else
	spent  atomic.Pointer[belljar.ToolError]
	more   atomic.Int64 // refused after that, without a record
}

// refused notes a call that policy refused with err. Calls under way at the same
// time may pass the bounds together: they are as many as a bridge has in flight.
func (c *calls) refused(err error) {
	failure, ok := errors.AsType[*belljar.ToolError](err)
	if !ok {
		return
	}
	r := &c.refusals
	if failure.Code == policy.CodeBudget {
		if r.budget.Add(1) >= maxOverBudget {
			r.spent.CompareAndSwap(nil, failure)
		}
		return
	}
	if r.other.Add(1) >= maxRefused {
		r.spent.CompareAndSwap(nil, &belljar.ToolError{Denied: true, Code: policy.CodeBudget,
			Reason: fmt.Sprintf("Blocked by policy: this run was refused %d tool calls and can make no more.", maxRefused)})
	}
}

// spent gives the answer to every further call, or nil while policy is asked.
func (c *calls) spent() *belljar.ToolError { return c.refusals.spent.Load() }

// refuse answers a call of a run that is spent.
func (r *run) refuse(tool string, spent *belljar.ToolError) *belljar.ToolError {
	r.calls.refusals.more.Add(1)
	r.e.parts.Metrics.Call("", outcomeDenied, 0)
	own := *spent
	own.Tool = tool
	return &own
}

// recordRefused writes the one record of the refusals that have none of their own.
func (r *run) recordRefused(ctx context.Context) error {
	n := r.calls.refusals.more.Load()
	if n == 0 {
		return nil
	}
	err := r.e.parts.Journal.Append(ctx, belljar.Record{
		Time: time.Now(), Run: r.res.ID, Session: session(r.req.Session), Caller: r.req.Caller, Event: "call", Name: refusedName,
		Args: "{}", Outcome: outcomeDenied, Code: policy.CodeBudget,
		Summary: fmt.Sprintf("%d further calls were refused because the run's budget was used up", n),
	})
	if err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	return nil
}
