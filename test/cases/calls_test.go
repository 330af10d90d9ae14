package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// calls sends the requests of a case one by one. Each must be answered: by a
// protocol error, or by an answer of the tool with a text in it.
func (b *bench) calls(v *verdict, c *Case) {
	p := &play{verdict: v, b: b, c: c, s: protocol{b}, nonce: newNonce()}
	for i, call := range c.Request.Variants {
		p.verdict = v.on(fmt.Sprintf("variant %d", i+1))
		if call.Then != "" {
			p.cancelled(call)
			continue
		}
		var afters []func(*reply)
		for _, m := range c.Expect.MustNot {
			afters = append(afters, harms[m](p))
		}
		ctx, cancel := context.WithTimeout(p.Context(), p.guard(&c.Expect))
		begin := time.Now()
		got, err := b.client.CallTool(ctx, p.params(call))
		hung := ctx.Err() != nil
		cancel()
		// A protocol error is a refusal that needs no more words.
		r := &reply{res: &belljar.Result{Status: belljar.StatusRefused, Stage: belljar.StageAdmission}}
		switch {
		case hung:
			p.Errorf("no reply within %v", time.Since(begin))
		case err != nil:
			r.texts = []string{err.Error()}
		default:
			answer, err := answered(got, time.Since(begin))
			if err != nil {
				p.Errorf("%v", err)
				continue
			}
			r = answer
			p.mark(&c.Expect, r)
		}
		for _, after := range afters {
			after(r)
		}
	}
}

func (p *play) params(call Call) *mcp.CallToolParams {
	params := &mcp.CallToolParams{Name: "execute_code"}
	if call.Name != "" {
		params.Name = call.Name
	}
	if len(call.Arguments) > 0 {
		params.Arguments = json.RawMessage(p.b.fill(string(call.Arguments), p.nonce))
	}
	return params
}

// cancelled gives up a call while its program runs; the program must go, and the
// server must answer the next call.
func (p *play) cancelled(call Call) {
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	var args struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		p.Errorf("%v", err)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.s.run(ctx, &program{nonce: p.nonce, source: args.Code}) // it is cancelled
	}()
	if !waited(func() bool { return len(processesOf(p.nonce)) > 0 }) {
		p.Errorf("the program did not start")
	}
	cancel()
	<-done
	if !waited(func() bool { return len(processesOf(p.nonce)) == 0 }) {
		p.Errorf("a cancelled call left %v", processesOf(p.nonce))
	}
	harms["engine_down"](p)(nil)
}

// waited tells whether something became true in a time in which it must have, on
// any machine.
func waited(ok func() bool) bool {
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !waited(ok) {
		t.Fatalf("waited in vain for %s", what)
	}
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Minute)
}
