package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/belljar/belljar"
)

// burst is for how many calls a stream stays with a goroutine per call after it
// was seen to have slow calls at the same time.
const burst = 64

// stream serves the calls of one process of the run.
type stream struct {
	b      *Bridge
	ctx    context.Context // ends with the stream
	cancel context.CancelCauseFunc
	sock   *socket
	out    writer
	ended  sync.Once

	// in, calls and spread belong to the goroutine that has the reader's role.
	in     *frames
	calls  uint64 // calls that were run by their reader
	spread int    // how many of the next calls get a goroutine of their own

	// turn is twice the number of the call that the reader runs itself, plus one
	// while it runs. Whoever swaps the one away has the reader's role: the reader
	// when it is done, the watch when that takes too long.
	turn    atomic.Uint64
	seen    uint64       // what the watch saw in turn last
	running atomic.Int64 // calls that run beside the reader
}

// call is one well-formed call.
type call struct {
	id   uint32
	tool string
	args json.RawMessage
	size int64 // bytes of the frame, counted in Bridge.held
}

// newStream makes a pair of sockets and registers the host's end as a stream,
// with one goroutine counted for it. The other end is the caller's to close.
func (b *Bridge) newStream() (*stream, int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("make a stream: %w", err)
	}
	s := &stream{b: b, sock: &socket{fd: fds[0]}}
	s.in = newFrames(s.sock)
	s.out.s = s
	s.ctx, s.cancel = context.WithCancelCause(b.ctx)

	b.mu.Lock()
	full := len(b.streams) >= b.cfg.MaxStreams
	late := b.closed
	few := len(b.streams) < roomyStreams
	if !full && !late {
		b.streams[s] = struct{}{}
		b.live++
	}
	b.mu.Unlock()

	if full || late {
		s.stop(ErrClosed)
		unix.Close(fds[1])
		if late {
			return nil, 0, ErrClosed
		}
		return nil, 0, &belljar.ToolError{Code: "too_many_streams", Reason: fmt.Sprintf(
			"at most %d processes of a script can call tools at the same time", b.cfg.MaxStreams)}
	}
	if few {
		// As much as the host's limits give: a large answer should leave in one
		// go. Not for every worker of a pool, it is kernel memory of ours.
		for _, fd := range fds {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
		}
	}
	return s, fds[1], nil
}

const (
	roomyStreams = 8
	sendBuffer   = 1 << 20
)

// stop ends the stream: its socket is shut and its calls are cancelled.
func (s *stream) stop(cause error) {
	s.ended.Do(func() {
		s.b.mu.Lock()
		delete(s.b.streams, s)
		s.b.mu.Unlock()
		s.cancel(cause)
		s.sock.shut()
	})
}

// serve reads calls and has them answered until the stream ends or another
// goroutine got the reader's role. The caller has entered the bridge for it.
func (s *stream) serve() {
	defer s.b.leave()
	for {
		k, err := s.next()
		if err != nil {
			s.stop(ErrGone)
			if errors.Is(err, errBroken) {
				s.b.stop(err)
			}
			return
		}
		if s.running.Load() > 0 {
			s.spread = burst
		}
		if s.spread > 0 {
			s.spread--
			if !s.b.enter() {
				s.drop(k)
				return
			}
			s.running.Add(1)
			go func() {
				defer s.b.leave()
				defer s.running.Add(-1)
				s.run(k)
			}()
			continue
		}
		s.calls++
		mine := s.calls<<1 | 1
		s.turn.Store(mine)
		s.b.watch.poke()
		s.run(k)
		if !s.turn.CompareAndSwap(mine, mine-1) {
			s.running.Add(-1)
			return
		}
	}
}

// takeOver gives the reader's role to a new goroutine if the call that turn
// named is still running.
func (s *stream) takeOver(turn uint64) {
	if !s.b.enter() {
		return // closing: nobody needs to read any more
	}
	s.running.Add(1)
	if !s.turn.CompareAndSwap(turn, turn-1) {
		s.running.Add(-1)
		s.b.leave()
		return
	}
	go s.serve()
}

// next returns the next well-formed call. What is malformed it answers itself.
func (s *stream) next() (*call, error) {
	for {
		h, err := s.in.head()
		if err != nil {
			return nil, err
		}
		if !s.b.take(s.ctx) {
			return nil, ErrClosed
		}
		k, bad, err := s.read(h)
		if err != nil {
			s.b.give()
			return nil, err
		}
		if bad == nil {
			return k, nil
		}
		s.b.malformed.Add(1)
		s.out.send(&reply{id: h.id, kind: kindError, data: encodeError(bad)})
	}
}

// read reads the body of a frame: a call, or an error for the script.
func (s *stream) read(h head) (*call, *belljar.ToolError, error) {
	if h.length > s.b.cfg.MaxFrame {
		return nil, &belljar.ToolError{Code: "too_large", Reason: fmt.Sprintf(
			"the arguments of this call take %d bytes, at most %d are allowed: pass less at once",
			h.length, s.b.cfg.MaxFrame)}, s.in.skip(h.length)
	}
	if !s.b.held.wait(s.ctx, h.length) {
		return nil, nil, ErrClosed
	}
	body, err := s.in.body(h.length)
	if err == nil {
		tool, args, bad := parseCall(h.kind, body, &s.b.cfg)
		if bad == nil {
			return &call{id: h.id, tool: tool, args: args, size: h.length}, nil, nil
		}
		s.b.held.release(h.length)
		return nil, bad, nil
	}
	s.b.held.release(h.length)
	return nil, nil, err
}

// run has one call answered.
func (s *stream) run(k *call) {
	if !s.b.held.begin(s.ctx) {
		s.drop(k)
		return
	}
	if !s.b.begin() {
		s.b.held.settle(k.size, 0)
		s.b.give()
		return
	}
	v, err := s.ask(k)
	if s.ctx.Err() != nil { // nobody waits for it any more
		s.b.held.settle(k.size, 0)
		s.b.give()
		return
	}
	r := s.answer(k, v, err)
	r.asked = true
	s.out.send(r)
}

// drop forgets a call that was not let run.
func (s *stream) drop(k *call) {
	s.b.held.release(k.size)
	s.b.give()
}

// ask calls the handler. A handler that panics costs this call and not the engine.
func (s *stream) ask(k *call) (v belljar.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = belljar.Value{}, fmt.Errorf("panic in tool %q: %v\n%s", k.tool, p, debug.Stack())
		}
	}()
	return s.b.handler.Call(s.ctx, k.tool, k.args)
}

// answer makes the reply to a call from what the handler said, and settles what
// the call holds.
func (s *stream) answer(k *call, v belljar.Value, err error) *reply {
	settled := false
	fail := func(e *belljar.ToolError) *reply {
		if !settled {
			s.b.held.settle(k.size, 0)
		}
		return &reply{id: k.id, kind: kindError, data: encodeError(e)}
	}
	if err != nil {
		var told *belljar.ToolError
		if errors.As(err, &told) {
			return fail(told)
		}
		s.b.fault(fmt.Errorf("call tool %q: %w", k.tool, err))
		return fail(&belljar.ToolError{Tool: k.tool, Code: "failed", Reason: fmt.Sprintf("tool '%s' failed", k.tool)})
	}
	n := int64(len(v.Data))
	if n > s.b.cfg.MaxResult {
		return fail(&belljar.ToolError{Tool: k.tool, Code: "result_too_large", Reason: fmt.Sprintf(
			"the answer of tool '%s' has %d bytes, at most %d are allowed: ask for a part of it", k.tool, n, s.b.cfg.MaxResult)})
	}
	r := &reply{id: k.id, data: v.Data, value: true}
	switch v.Kind {
	case belljar.ValueText:
		r.kind = kindText
	case belljar.ValueJSON:
		r.kind = kindJSON
	case belljar.ValueBytes:
		r.kind = kindBytes
	default:
		s.b.fault(fmt.Errorf("call tool %q: value of unknown kind %d", k.tool, v.Kind))
		return fail(&belljar.ToolError{Tool: k.tool, Code: "failed", Reason: fmt.Sprintf("tool '%s' failed", k.tool)})
	}
	settled = true
	if !s.b.held.settle(k.size, n) {
		return fail(&belljar.ToolError{Tool: k.tool, Code: "backlog", Reason: fmt.Sprintf(
			"the answer of tool '%s' was dropped: answers that the script has not read yet fill %d bytes; make fewer large calls at the same time",
			k.tool, s.b.cfg.MaxHeld)})
	}
	r.held = n
	return r
}
