package bridge

import (
	"context"
	"sync"
)

// budget bounds the bytes that a run's calls hold in the engine's memory.
// Arguments wait until half of it is free, so that reading stops while answers
// pile up; results, which exist already when they are counted, may use all of
// it and are dropped beyond. One item alone always fits, else it never would.
type budget struct {
	max int64

	mu   sync.Mutex
	held int64
	free chan struct{} // closed at the next release; nil when nobody waits
}

func newBudget(max int64) *budget { return &budget{max: max} }

// wait takes n bytes for arguments as soon as there is room; false when ctx
// ended first.
func (g *budget) wait(ctx context.Context, n int64) bool {
	for {
		g.mu.Lock()
		if g.held == 0 || g.held+n <= g.max/2 {
			g.held += n
			g.mu.Unlock()
			return true
		}
		if g.free == nil {
			g.free = make(chan struct{})
		}
		free := g.free
		g.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return false
		}
	}
}

// try takes n bytes for a result, or says that there is no room.
func (g *budget) try(n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != 0 && g.held+n > g.max {
		return false
	}
	g.held += n
	return true
}

// release gives n bytes back.
func (g *budget) release(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= n
	if g.free != nil {
		close(g.free)
		g.free = nil
	}
}
