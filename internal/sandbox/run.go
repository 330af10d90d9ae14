package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox/cgroup"
	"github.com/belljar/belljar/internal/sandbox/initproc"
	"golang.org/x/sys/unix"
)

const (
	// setupTime bounds everything before the program's first instruction.
	setupTime = 20 * time.Second
	// drainTime bounds the wait for output that is still in the pipes after the
	// last process was told to end.
	drainTime = 2 * time.Second
)

// Run runs one program and returns when it has ended and its output is read. The
// error is a *belljar.Refusal when the host cannot give the minimum level or the
// spec cannot be honoured, the context's cause when it ended before anything was
// started, and a fault otherwise. How the program ended is never an error.
func (h *Host) Run(ctx context.Context, s *Spec) (*Exit, error) {
	begin := time.Now()
	if s.Bridge != nil {
		defer s.Bridge.Close()
	}
	if err := h.admit(s); err != nil {
		return nil, err
	}
	slot, err := h.acquire(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &run{h: h, spec: s, slot: slot, begin: begin}
	exit, err := r.do(ctx)
	settled := func() bool { return slot.spawner.Healthy() }
	if r.proc != nil {
		r.proc.Close()
		settled = func() bool { return slot.settle(r.proc) }
	}
	h.release(slot, settled)
	return exit, err
}

// admit checks what needs no process.
func (h *Host) admit(s *Spec) error {
	minimum := s.Minimum
	if minimum == "" {
		minimum = h.cfg.Minimum
	}
	if minimum.Rank() > belljar.LevelNamespaces.Rank() {
		return belljar.Refuse(belljar.CodeIsolation, "Ask for the level namespaces, or leave the level out.",
			"This host gives the isolation level namespaces at most; the run asked for %s.", minimum)
	}
	return checkSpec(s)
}

// run is the state of one run on its way through the sandbox.
type run struct {
	h     *Host
	spec  *Spec
	slot  *slot
	begin time.Time
	proc  *initproc.Process

	written  atomic.Int64
	overflow chan struct{}
}

func (r *run) do(ctx context.Context) (*Exit, error) {
	limits := r.spec.Limits
	if err := r.slot.group.Arm(cgroup.Limits{MemoryBytes: limits.MemoryBytes, Processes: limits.Processes}); err != nil {
		return nil, err
	}
	req := r.h.setup(r.slot, r.spec)
	readers, err := r.spawn(req)
	if err != nil {
		return nil, r.h.explain(err)
	}
	reports := make(chan report, 2)
	var own sync.WaitGroup
	own.Go(func() { follow(r.proc, reports) })
	exit, err := r.supervise(ctx, reports)
	r.proc.Kill() // the program has ended or must; nothing outlives it
	r.drain(readers)
	own.Wait()
	if err != nil {
		return nil, err
	}
	r.account(exit)
	return exit, nil
}

// stream is one output pipe and the goroutine that reads it.
type stream struct {
	pipe *os.File
	done chan struct{}
}

// spawn makes the streams and the process.
func (r *run) spawn(req *initproc.Request) (readers []stream, err error) {
	stdin, err := initproc.Memfd("stdin", r.spec.Stdin, false)
	if err != nil {
		return nil, err
	}
	defer unix.Close(stdin)
	req.FDs = []int{stdin}
	var pipes []*os.File
	defer func() {
		for _, fd := range req.FDs[1:] {
			unix.Close(fd)
		}
		if err != nil {
			for _, p := range pipes {
				p.Close()
			}
		}
	}()
	for range 2 {
		p, w, err := initproc.Pipe()
		if err != nil {
			return nil, err
		}
		pipes = append(pipes, p)
		req.FDs = append(req.FDs, w)
	}
	if r.spec.Bridge != nil {
		// A copy of the descriptor, so that the loop above may close it too.
		fd, err := unix.FcntlInt(r.spec.Bridge.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, err
		}
		req.FDs = append(req.FDs, fd)
	}
	r.overflow = make(chan struct{})
	if r.proc, err = r.slot.spawner.Spawn(req); err != nil {
		return nil, err
	}
	if r.spec.Bridge != nil {
		r.spec.Bridge.Close()
	}
	for i, w := range []io.Writer{r.spec.Stdout, r.spec.Stderr} {
		s := stream{pipe: pipes[i], done: make(chan struct{})}
		readers = append(readers, s)
		go func() {
			defer close(s.done)
			r.pump(s.pipe, w)
		}()
	}
	return readers, nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// pump passes one stream on while it is read. The limit counts both streams, and
// meeting it ends the run; but each may pass on as much as the limit by itself, so
// that a flood on one cannot swallow what was written to the other before it. What
// comes after is thrown away: the program must not block on it.
func (r *run) pump(from io.Reader, to io.Writer) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	limit := r.spec.Limits.OutputBytes
	left := limit
	for {
		n, err := from.Read(*buf)
		if n > 0 {
			if keep := min(int64(n), left); keep > 0 && to != nil {
				// A writer that fails loses its own stream, not the run.
				_, _ = to.Write((*buf)[:keep])
				left -= keep
			}
			if both := r.written.Add(int64(n)); both > limit && both-int64(n) <= limit {
				close(r.overflow)
			}
		}
		if err != nil {
			return
		}
	}
}

// drain waits until the pipes have ended, or gives up on them: a process that
// cannot die at once must not hold the answer.
func (r *run) drain(readers []stream) {
	deadline := time.Now().Add(drainTime)
	for _, s := range readers {
		s.pipe.SetReadDeadline(deadline)
	}
	for _, s := range readers {
		<-s.done
		s.pipe.Close()
	}
}

// end kills everything of a run that does not end by itself, twice over: PID 1, with
// which the kernel ends its namespace, and every process of the control group at
// once, so that PID 1 need not get its turn on a processor that the others are
// fighting for. The slot is not used again: on Linux 6.18 a process cloned into a
// group that was once killed was seen to be born dead.
func (r *run) end() {
	r.proc.Kill()
	r.slot.killed = true
	// An error leaves what PID 1's end does not reach, which is nothing.
	_ = r.slot.group.Kill()
}

type report struct {
	status initproc.Status
	err    error
}

// follow passes on the two reports of a process: started, ended.
func follow(p *initproc.Process, to chan<- report) {
	for {
		st, err := p.Next()
		to <- report{st, err}
		if err != nil || !st.Started {
			return
		}
	}
}

// supervise waits for the end: the program's own, or the first limit it meets.
func (r *run) supervise(ctx context.Context, reports <-chan report) (*Exit, error) {
	exit := &Exit{}
	clock := time.NewTimer(setupTime)
	defer clock.Stop()
	var started time.Time
	var watched <-chan struct{}
	kill := func(c Cause) {
		if exit.Cause == CauseNone {
			exit.Cause = c
			r.end()
		}
	}
	done := ctx.Done()
	overflow := r.overflow
	oom := r.slot.group.OOM()
	for {
		select {
		case rep := <-reports:
			switch {
			case rep.err == nil && rep.status.Started:
				started = time.Now()
				exit.Start = started.Sub(r.begin)
				r.h.sweepLater()
				exit.Isolation = r.slot.isolation(r.h.filter.Hash())
				clock.Reset(time.Duration(r.spec.Limits.TimeoutMS) * time.Millisecond)
				if stop := watch(r.proc.PID, r.slot, r.spec.Limits); stop != nil {
					watched = stop.exceeded
					defer func() {
						stop.close()
						stop.account(exit, r.spec.Limits.Processes)
					}()
				}
			case rep.err == nil:
				exit.Wait = rep.status.Wait
				exit.Usage.CPUMS = ms(rep.status.User + rep.status.System)
				exit.Usage.PeakMemoryBytes = rep.status.MaxRSS
				exit.Faults = rep.status.Faults
				exit.Denials = diskDenials(rep.status)
				exit.Usage.WallMS = ms(time.Since(started))
				return exit, nil
			case errors.Is(rep.err, initproc.ErrGone):
				return r.gone(ctx, exit, started)
			default:
				if exit.Cause != CauseNone {
					return r.gone(ctx, exit, started)
				}
				return nil, r.h.explain(rep.err)
			}
		case <-clock.C:
			if started.IsZero() {
				r.end()
				return nil, errors.New("the sandbox was not ready after 20 s")
			}
			kill(CauseTimeout)
		case <-overflow:
			overflow = nil
			kill(CauseOutput)
		case <-oom:
			oom = nil
			kill(CauseMemory)
		case <-watched:
			watched = nil
			kill(CauseMemory)
		case <-done:
			done = nil
			kill(CauseCancel)
		}
	}
}

// gone handles a run that ended without a report: we killed it, or the kernel
// did because of its memory limit.
func (r *run) gone(ctx context.Context, exit *Exit, started time.Time) (*Exit, error) {
	exit.Wait = 9 // died on SIGKILL
	if !started.IsZero() {
		exit.Usage.WallMS = ms(time.Since(started))
	}
	if exit.Cause == CauseNone && !r.memoryMet() {
		if ctx.Err() != nil {
			exit.Cause = CauseCancel
			return exit, nil
		}
		return nil, initproc.ErrGone
	}
	return exit, nil
}

// memoryMet says whether the kernel killed something of this run for memory.
func (r *run) memoryMet() bool {
	st, err := r.slot.group.Stats()
	return err == nil && st.OOMKills > 0
}

// account completes the usage from the control group, which saw every process,
// and settles the cause: whoever met the memory limit ran out of memory, even if
// only a child of it was killed and it then ended by itself.
func (r *run) account(exit *Exit) {
	exit.Usage.Processes = -1
	if !r.slot.memoryLimited {
		r.accountByRusage(exit)
	}
	st, err := r.slot.group.Stats()
	if err != nil {
		return
	}
	if st.OOMKills > 0 && exit.Cause == CauseNone {
		exit.Cause = CauseMemory
	}
	if st.MemoryPeak > 0 {
		exit.Usage.PeakMemoryBytes = st.MemoryPeak
	}
	if st.CPU >= 0 {
		exit.Usage.CPUMS = ms(st.CPU)
	}
	if st.PidsPeak >= 0 {
		exit.Usage.Processes = st.PidsPeak
	}
	if st.PidsRefused > 0 {
		exit.Denials = append(exit.Denials, processDenial)
	}
}

// accountByRusage is for hosts without control groups. What the kernel added up for
// PID 1 covers every process that ended by itself; those that were killed with the
// namespace are in what the watcher saw last.
func (r *run) accountByRusage(exit *Exit) {
	select {
	case <-r.proc.Reaped():
		exit.Usage.CPUMS = max(exit.Usage.CPUMS, ms(r.proc.Total()))
	case <-time.After(drainTime):
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
