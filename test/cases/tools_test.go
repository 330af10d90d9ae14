package cases

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/belljar/belljar/jar"
)

// offered is what the tools of the harness are in a case's words.
var offered = []string{
	"echo(text) returns text", "slow(seconds) returns after that time", "fail() raises",
	"forbidden() is denied by policy", "count() counts its own calls",
}

var toolNames = []string{"echo", "slow", "fail", "forbidden", "count"}

// tools are the Go functions that scripts call, and what they saw.
type tools struct {
	counted   atomic.Int64
	forbidden atomic.Int64 // must stay zero
	stopped   atomic.Int64 // calls of slow that were told to stop
	finished  atomic.Int64 // calls of slow that were not
}

func (h *tools) options() []jar.Option {
	type none struct{}
	return []jar.Option{
		jar.WithFunc("echo", "Returns text.", func(_ context.Context, in struct {
			Text string `json:"text"`
		}) (string, error) {
			return in.Text, nil
		}),
		jar.WithFunc("slow", "Returns after that time.", func(ctx context.Context, in struct {
			Seconds float64 `json:"seconds"`
		}) (string, error) {
			timer := time.NewTimer(time.Duration(in.Seconds * float64(time.Second)))
			defer timer.Stop()
			select {
			case <-timer.C:
				h.finished.Add(1)
				return "done", nil
			case <-ctx.Done():
				h.stopped.Add(1)
				return "", context.Cause(ctx)
			}
		}),
		jar.WithFunc("fail", "Raises.", func(context.Context, none) (string, error) {
			return "", errors.New("it failed, as it always does")
		}),
		jar.WithFunc("forbidden", "Is denied by policy.", func(context.Context, none) (string, error) {
			h.forbidden.Add(1)
			return "OPEN", nil
		}),
		jar.WithFunc("count", "Counts its own calls.", func(context.Context, none) (int64, error) {
			return h.counted.Add(1), nil
		}),
	}
}
