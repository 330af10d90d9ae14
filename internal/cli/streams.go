package cli

import (
	"context"
	"io"
	"sync"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/output"
)

// streams writes a run's output to our own stdout and stderr while it comes. A
// reader that pauses must not count against the program's time, so the bytes wait
// in memory; the run's output limit bounds them.
type streams struct {
	out, err io.Writer
	closers  []io.Closer
	cancel   context.CancelCauseFunc
	wg       sync.WaitGroup

	mu     sync.Mutex
	more   *sync.Cond
	queue  []piece
	closed bool
	failed error // of the first write that failed; nothing is written after it
}

type piece struct {
	w    io.Writer
	data []byte
}

func newStreams(a *app, cancel context.CancelCauseFunc) *streams {
	s := &streams{out: a.out, err: a.err, cancel: cancel}
	s.more = sync.NewCond(&s.mu)
	if a.outTTY {
		n := output.Neutral(a.out)
		s.out, s.closers = n, append(s.closers, n)
	}
	if a.errTTY {
		n := output.Neutral(a.err)
		s.err, s.closers = n, append(s.closers, n)
	}
	s.wg.Go(s.pump)
	return s
}

func (s *streams) event(e belljar.Event) {
	var w io.Writer
	switch e.Type {
	case "stdout":
		w = s.out
	case "stderr":
		w = s.err
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil || len(e.Data) == 0 {
		return
	}
	if last := len(s.queue) - 1; last >= 0 && s.queue[last].w == w {
		s.queue[last].data = append(s.queue[last].data, e.Data...)
	} else {
		// The sender may use its buffer again.
		s.queue = append(s.queue, piece{w, append([]byte(nil), e.Data...)})
	}
	s.more.Signal()
}

func (s *streams) pump() {
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.closed {
			s.more.Wait()
		}
		if len(s.queue) == 0 {
			s.mu.Unlock()
			return
		}
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		if _, err := next.w.Write(next.data); err != nil {
			s.fail(err)
		}
	}
}

// fail gives up on the output and ends the run: nobody reads it any more.
func (s *streams) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed, s.queue = err, nil
		s.cancel(err)
	}
}

// close waits until everything is written.
func (s *streams) close() error {
	s.mu.Lock()
	s.closed = true
	s.more.Signal()
	s.mu.Unlock()
	s.wg.Wait()
	for _, c := range s.closers {
		if err := c.Close(); err != nil {
			s.fail(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
