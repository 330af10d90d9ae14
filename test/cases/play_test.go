package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/jar"
)

// play is one case on one surface.
type play struct {
	*verdict
	b     *bench
	c     *Case
	s     surface
	nonce string
}

// guard is the time after which a run counts as hanging. It is generous: nothing
// here measures speed.
func (p *play) guard(e *Expect) time.Duration {
	within := max(e.WithinMS, p.c.Limits.TimeoutMS+2000)
	return 40*time.Second + 3*time.Duration(within)*time.Millisecond
}

// run plays the case and gives the reply of its program, or of the last of its
// steps; nil if there was none.
func (p *play) run() *reply {
	e := &p.c.Expect
	var afters []func(*reply)
	for _, m := range e.MustNot {
		afters = append(afters, harms[m](p))
	}
	if e.After != "" {
		afters = append(afters, afterwards[e.After](p))
	}
	last := p.programs()
	if last == nil {
		return nil
	}
	p.mark(e, last)
	if e.Audit != nil {
		p.audit(e.Audit, last)
	}
	p.recorded(last)
	for _, after := range afters {
		after(last)
	}
	return last
}

// mark tells what of an expectation is not met, and shows the result once.
func (p *play) mark(e *Expect, r *reply) {
	wrong := compare(e, r)
	for _, w := range wrong {
		p.Errorf("%s", w)
	}
	if len(wrong) > 0 {
		res := *r.res
		res.Stdout, res.Stderr = ends(res.Stdout), ends(res.Stderr)
		if text, err := json.Marshal(&res); err == nil {
			p.Errorf("the result was %s", text)
		}
	}
}

// ends keeps of a long text what a person looks at first.
func ends(text string) string {
	if len(text) <= 3000 {
		return text
	}
	return fmt.Sprintf("%s [... of %d bytes] %s", text[:1500], len(text), text[len(text)-1500:])
}

// programs runs the program, or the steps in their order, and waits for all.
func (p *play) programs() *reply {
	if len(p.c.Steps) == 0 {
		return p.one(p.c.source(), &p.c.Expect)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	var last *reply
	for i, step := range p.c.Steps {
		e := step.Expect
		if e == nil {
			e = &Expect{}
		}
		make := func() *reply {
			r := p.one(step.Source, e)
			if r != nil {
				on := *p
				on.verdict = p.on(fmt.Sprintf("step %d", i+1))
				on.mark(e, r)
			}
			return r
		}
		if step.Background {
			wg.Go(func() { make() })
		} else {
			last = make()
		}
	}
	return last
}

// one runs one program under the guard.
func (p *play) one(source string, e *Expect) *reply {
	guard := p.guard(e)
	ctx, cancel := context.WithTimeout(p.Context(), guard)
	defer cancel()
	r, err := p.s.run(ctx, p.b.program(p.c, source, p.nonce))
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.Errorf("no reply within %v", guard)
		return nil
	case err != nil:
		p.Errorf("%v", err)
		return nil
	}
	return r
}

// line runs a line of Python on the same surface and gives its output.
func (p *play) line(source string) string {
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	program := p.b.program(&Case{}, source, p.nonce)
	r, err := p.s.run(ctx, program)
	if err != nil {
		p.Errorf("a line of Python: %v", err)
		return ""
	}
	if !r.res.OK || *r.res.ExitCode != 0 {
		p.Errorf("a line of Python: %s %s %s", r.res.Status, number(r.res.ExitCode), r.res.Stderr)
	}
	return r.res.Stdout
}

// journaled tells whether the runs of this surface are in the bench's own journal.
func (p *play) journaled() bool {
	switch p.s.(type) {
	case library, protocol:
		return true
	}
	return false
}

func (p *play) records(r *reply) []belljar.Record {
	if !p.journaled() || r.res.ID == "" {
		return nil
	}
	list, err := p.b.jar.Records(p.Context(), jar.Filter{Run: r.res.ID, Limit: 5000})
	if err != nil {
		p.Errorf("%v", err)
	}
	return list
}

func (p *play) journal(r *reply) string {
	text, err := json.Marshal(p.records(r))
	if err != nil {
		p.Errorf("%v", err)
	}
	return string(text)
}

// recorded looks for the one record of the run. It is there when the reply is.
func (p *play) recorded(r *reply) {
	if !p.journaled() || r.res.ID == "" {
		return
	}
	n := 0
	for _, record := range p.records(r) {
		if record.Event == "run" {
			n++
			if record.Outcome != string(r.res.Status) {
				p.Errorf("the journal says %s, the result %s", record.Outcome, r.res.Status)
			}
		}
	}
	if n != 1 {
		p.Errorf("the journal has %d records of the run", n)
	}
}

// audit compares the journal's calls, and the result's.
func (p *play) audit(want *Audit, r *reply) {
	calls, denied := 0, 0
	byName := map[string]int{}
	for _, record := range p.records(r) {
		if record.Event != "call" {
			continue
		}
		calls++
		byName[record.Name]++
		if record.Outcome == "denied" {
			denied++
		}
	}
	if int64(calls) != r.res.ToolCalls.Count || int64(denied) != r.res.ToolCalls.Denied {
		p.Errorf("the journal has %d calls, %d denied; the result %d and %d", calls, denied, r.res.ToolCalls.Count, r.res.ToolCalls.Denied)
	}
	if want.ToolCalls != nil && calls != *want.ToolCalls {
		p.Errorf("the journal has %d calls, want %d", calls, *want.ToolCalls)
	}
	if want.Denied != nil && denied != *want.Denied {
		p.Errorf("the journal has %d denied calls, want %d: %s", denied, *want.Denied, ends(p.journal(r)))
	}
	for name, n := range want.ToolCallsByName {
		if got := byName["ptc:"+name]; got != n {
			p.Errorf("the journal has %d calls of %s, want %d", got, name, n)
		}
	}
}
