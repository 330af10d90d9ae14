package bridge

import (
	"sync"

	"golang.org/x/sys/unix"
)

// reply is one answer on its way out. It holds a place among the calls in
// flight until it is written or given up.
type reply struct {
	id    uint32
	kind  byte
	data  []byte
	held  int64 // bytes of data counted in Bridge.held
	asked bool  // the handler was asked
	value bool  // data is a result, not an error

	head  [headLen]byte
	parts [2][]byte
	left  [][]byte // what of parts is not written yet
}

// writer writes the replies of a stream whole and one after the other. A reply
// that the socket takes at once is written by who made it; the others wait for
// a goroutine that exists only while there are some. The queue is bounded by
// the places among the calls in flight.
type writer struct {
	s *stream

	mu    sync.Mutex
	queue []*reply // the first is the goroutine's while busy
	busy  bool     // the goroutine runs
}

// send writes r or queues it. It never waits for the script.
func (w *writer) send(r *reply) {
	head{int64(len(r.data)), r.id, r.kind}.put(&r.head)
	r.parts = [2][]byte{r.head[:], r.data}
	r.left = r.parts[:]

	w.mu.Lock()
	if w.busy {
		w.queue = append(w.queue, r)
		w.mu.Unlock()
		return
	}
	err := w.push(r, unix.MSG_DONTWAIT)
	if err == unix.EAGAIN && w.s.b.enter() {
		w.busy = true
		w.queue = append(w.queue, r)
		w.mu.Unlock()
		go w.drain()
		return
	}
	w.mu.Unlock()
	w.finish(r, err)
}

// drain writes what is queued, waiting for the script to read.
func (w *writer) drain() {
	defer w.s.b.leave()
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.busy = false
			w.queue = nil
			w.mu.Unlock()
			return
		}
		r := w.queue[0]
		w.queue[0] = nil
		w.queue = w.queue[1:]
		w.mu.Unlock()
		w.finish(r, w.push(r, 0))
	}
}

// push writes what is left of r.
func (w *writer) push(r *reply, flags int) error {
	for {
		n, err := w.s.sock.send(r.left, flags)
		for n > 0 || len(r.left) > 0 && len(r.left[0]) == 0 {
			m := min(n, len(r.left[0]))
			n -= m
			if r.left[0] = r.left[0][m:]; len(r.left[0]) == 0 {
				r.left = r.left[1:]
			}
		}
		if err != nil || len(r.left) == 0 {
			return err
		}
	}
}

// finish settles the accounts of a reply that was written, or never will be.
func (w *writer) finish(r *reply, err error) {
	b := w.s.b
	if err == nil && r.asked {
		b.answered.Add(1)
		if r.value {
			b.bytes.Add(int64(len(r.data)))
		}
	}
	r.data, r.parts, r.left = nil, [2][]byte{}, nil
	if r.held > 0 {
		b.held.answered(r.held)
	}
	b.give()
	if err != nil {
		w.s.stop(ErrGone)
	}
}
