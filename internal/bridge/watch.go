package bridge

import (
	"sync/atomic"
	"time"
)

// patience is how often the watch looks. A call that it sees twice has had its
// reader for itself long enough.
const patience = 2 * time.Millisecond

// restAfter is after how many looks without any call the watch sleeps until it
// is poked.
const restAfter = 8

// watch looks after readers that run a call themselves. It is what bounds the
// delay that one slow call can cause to those behind it: two looks. A timer for
// each call would cost more than the call's own overhead.
type watch struct {
	on  atomic.Bool // it looks; false: it sleeps
	bed chan struct{}
}

func (w *watch) init() { w.bed = make(chan struct{}, 1) }

// poke makes sure that the watch looks.
func (w *watch) poke() {
	if !w.on.Load() && w.on.CompareAndSwap(false, true) {
		w.bed <- struct{}{}
	}
}

// keepWatch is the watch's goroutine.
func (b *Bridge) keepWatch() {
	defer b.leave()
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-b.watch.bed:
		case <-b.ctx.Done():
			return
		}
		for rest := 0; rest < restAfter; rest++ {
			tick.Reset(patience)
			select {
			case <-tick.C:
			case <-b.ctx.Done():
				return
			}
			if b.look() {
				rest = 0
			}
		}
		b.watch.on.Store(false)
		// A reader that began meanwhile took the watch for awake and did not poke.
		if b.busy() {
			b.watch.poke()
		}
	}
}

// look takes the reader's role from calls that it sees for the second time, and
// says whether anything happened since the last look.
func (b *Bridge) look() (moved bool) {
	b.mu.Lock()
	streams := b.list()
	b.mu.Unlock()
	for _, s := range streams {
		turn := s.turn.Load()
		if turn != s.seen {
			s.seen = turn
			moved = true
		} else if turn&1 == 1 {
			s.takeOver(turn)
			moved = true
		}
	}
	return moved
}

func (b *Bridge) busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.streams {
		if s.turn.Load()&1 == 1 {
			return true
		}
	}
	return false
}
