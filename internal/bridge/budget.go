package bridge

import (
	"context"
	"sync"
)

// budget bounds what a run's calls hold in the engine's memory, and how many of
// them run at once. Arguments wait until half of the bytes are free, so that
// reading stops while answers pile up. A call is let begin when there is room for
// an answer of some size: its real size is only known when it exists. An answer
// that is larger may use all that is left and is dropped beyond. One item alone
// always fits, else it never would.
type budget struct {
	max  int64 // bytes
	each int64 // bytes that are kept free for the answer of a call that runs
	most int   // calls that run at once

	mu      sync.Mutex
	held    int64         // bytes of arguments and answers
	answers int64         // those of answers
	running int           // calls, for each of which there is room kept free beside held
	free    chan struct{} // closed at the next release; nil when nobody waits
}

// newBudget keeps half of the bytes for the answers of calls that run.
func newBudget(max int64, most int, largest int64) *budget {
	return &budget{max: max, most: most, each: min(largest, max/int64(2*most))}
}

// wait takes n bytes for arguments as soon as there is room; false when ctx
// ended first.
func (g *budget) wait(ctx context.Context, n int64) bool {
	return g.until(ctx, func() bool {
		if g.held != 0 && g.held+n > g.max/2 {
			return false
		}
		g.held += n
		return true
	})
}

// begin waits until one call more may run; false when ctx ended first. It needs
// one settle.
func (g *budget) begin(ctx context.Context) bool {
	return g.until(ctx, func() bool {
		one := g.running == 0 && g.answers == 0
		if g.running >= g.most || !one && g.held+g.kept()+g.each > g.max {
			return false
		}
		g.running++
		return true
	})
}

// settle ends a call that ran: it gives the bytes of its arguments back and takes
// n for its answer, or says that there is no room.
func (g *budget) settle(args, n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.held -= args
	one := g.running == 0 && g.answers == 0
	fits := one || g.held+g.kept()+n <= g.max
	if fits {
		g.answers += n
		g.held += n
	}
	g.wake()
	return fits
}

// release gives n bytes of arguments back.
func (g *budget) release(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= n
	g.wake()
}

// answered gives n bytes of an answer back.
func (g *budget) answered(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= n
	g.answers -= n
	g.wake()
}

// kept is how many bytes the calls that run are to find free. The caller holds mu.
func (g *budget) kept() int64 { return int64(g.running) * g.each }

// until waits for take, which is asked with mu held.
func (g *budget) until(ctx context.Context, take func() bool) bool {
	for {
		g.mu.Lock()
		if take() {
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

// wake lets those who wait look again. The caller holds mu.
func (g *budget) wake() {
	if g.free != nil {
		close(g.free)
		g.free = nil
	}
}
