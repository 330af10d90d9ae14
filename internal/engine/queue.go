package engine

import (
	"context"
	"sync/atomic"

	"github.com/belljar/belljar"
)

// queue lets a fixed number of runs in at once and a bounded number wait, in order.
type queue struct {
	slots   chan struct{}
	waiting atomic.Int64
	most    int64
}

func newQueue(runs, waiting int) *queue {
	return &queue{slots: make(chan struct{}, runs), most: int64(waiting)}
}

// enter waits for a slot. waits is called once if there is none at once. The error
// is a refusal when too many wait, else the context's cause.
func (q *queue) enter(ctx context.Context, waits func()) error {
	select {
	case q.slots <- struct{}{}:
		return nil
	default:
	}
	if q.waiting.Add(1) > q.most {
		q.waiting.Add(-1)
		return belljar.Refuse(belljar.CodeBusy, "Wait a few seconds and call again.",
			"%d runs are under way and %d wait; there is no room for another.", cap(q.slots), q.most)
	}
	defer q.waiting.Add(-1)
	waits()
	select {
	case q.slots <- struct{}{}: // a channel serves those who wait in order
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *queue) leave() { <-q.slots }
