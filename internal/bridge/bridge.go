package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belljar/belljar"
)

// ErrClosed is the cause of a call's context after the bridge was closed: the
// run is over and nobody will read the answer.
var ErrClosed = errors.New("the bridge of this run is closed")

// ErrGone is the cause of a call's context when the process that made the call
// is gone while the run goes on.
var ErrGone = errors.New("the process that made this call is gone")

// Handler answers the calls of one run. It is called from many goroutines at
// once. The context ends when the caller is gone or the bridge is closed
// (context.Cause: [ErrGone], [ErrClosed] or the cause of the run's context); an
// answer that comes later is dropped. args is a JSON object, checked, of which
// the handler may keep the bytes. An error should be a *belljar.ToolError; of
// any other the script is told only that the tool failed.
type Handler interface {
	Call(ctx context.Context, tool string, args json.RawMessage) (belljar.Value, error)
}

// Config holds the caps of one run's bridge. Zero means the default.
type Config struct {
	MaxFrame    int64 `toml:"max_frame"`     // bytes of one call; default 32 MiB, at most 1 GiB
	MaxResult   int64 `toml:"max_result"`    // bytes of one result; default 16 MiB, at most 1 GiB
	MaxHeld     int64 `toml:"max_held"`      // bytes of arguments and unread results of a run; default 128 MiB
	MaxInFlight int   `toml:"max_in_flight"` // calls of a run that are not answered; default 64
	MaxRunning  int   `toml:"max_running"`   // those of them that run at once, the others wait; default 16
	MaxStreams  int   `toml:"max_streams"`   // processes of a run that call tools; default 64
	MaxDepth    int   `toml:"max_depth"`     // nesting of arguments; default 256
	MaxName     int   `toml:"max_name"`      // bytes of a tool's name; default 128, at most 255

	// Grace is how long Close waits for handlers that ignore their context;
	// default one second.
	Grace time.Duration `toml:"-"`
	// Fault, if set, is told about what is our failure and not the script's: a
	// handler that panicked or gave an error that is no *belljar.ToolError. It
	// is called from the goroutine of the call.
	Fault func(error) `toml:"-"`
}

// withDefaults fills in the defaults and refuses nonsense.
func (c Config) withDefaults() (Config, error) {
	size := func(name string, v *int64, def, most int64) error {
		if *v == 0 {
			*v = def
		}
		if *v < 0 || *v > most {
			return fmt.Errorf("bridge: %s is %d, want 1 to %d", name, *v, most)
		}
		return nil
	}
	count := func(name string, v *int, def, most int) error {
		n := int64(*v)
		err := size(name, &n, int64(def), int64(most))
		*v = int(n)
		return err
	}
	if c.Grace == 0 {
		c.Grace = time.Second
	}
	if c.Grace < 0 {
		return c, fmt.Errorf("bridge: grace is %v, want more than 0", c.Grace)
	}
	return c, errors.Join(
		size("max_frame", &c.MaxFrame, 32<<20, hardFrame),
		size("max_result", &c.MaxResult, 16<<20, hardFrame),
		size("max_held", &c.MaxHeld, 128<<20, 1<<40),
		count("max_in_flight", &c.MaxInFlight, 64, 1<<16),
		count("max_running", &c.MaxRunning, 16, 1<<16),
		count("max_streams", &c.MaxStreams, 64, 1<<12),
		count("max_depth", &c.MaxDepth, 256, 10000),
		count("max_name", &c.MaxName, 128, 255),
	)
}

// Stats is what went over a bridge.
type Stats struct {
	// Answered counts the calls that reached the handler and whose answer was
	// given to the script, errors and denials too.
	Answered int64
	// Bytes counts the bytes of results given to the script, without errors.
	Bytes int64
	// CutOff counts the calls that reached the handler and got no answer: the
	// bridge was closed, or the process that asked was gone.
	CutOff int64
	// Malformed counts the frames that were answered without asking the handler.
	Malformed int64
}

// Bridge serves the calls of one run.
type Bridge struct {
	cfg     Config
	handler Handler
	ctx     context.Context
	cancel  context.CancelCauseFunc
	unhook  func() bool // stops listening to the run's context
	end     sync.Once
	child   *os.File
	control *control

	slots chan struct{} // one for each call in flight
	held  *budget       // bytes of arguments and results in memory
	watch watch

	answered, bytes, malformed atomic.Int64

	mu      sync.Mutex
	closed  bool
	live    int           // goroutines that are ours
	idle    chan struct{} // closed when closed and live is 0
	begun   int64         // calls given to the handler
	streams map[*stream]struct{}
}

// Open makes the sockets of one run and starts serving. When ctx ends, the
// bridge ends too; Close must be called in any case.
func Open(ctx context.Context, cfg Config, h Handler) (*Bridge, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the bridge's socket: %w", err)
	}
	b := &Bridge{
		cfg:     cfg,
		handler: h,
		child:   os.NewFile(uintptr(fds[1]), "bridge-child"),
		slots:   make(chan struct{}, cfg.MaxInFlight),
		held:    newBudget(cfg.MaxHeld, cfg.MaxRunning, cfg.MaxResult),
		idle:    make(chan struct{}),
		streams: map[*stream]struct{}{},
		live:    2, // control and watch
	}
	b.watch.init()
	if b.control, err = newControl(fds[0]); err != nil {
		b.child.Close()
		return nil, err
	}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	go b.serveControl()
	go b.keepWatch()
	b.unhook = context.AfterFunc(ctx, func() { b.stop(context.Cause(ctx)) })
	return b, nil
}

// ChildFile is the end that becomes descriptor 3 of the program. It may be
// closed as soon as the program has it; otherwise Close does, and nothing else,
// so that its number names no other file while a program is being started.
func (b *Bridge) ChildFile() *os.File { return b.child }

// Close ends the bridge at once: sockets are shut, the contexts of calls in
// flight end, and no call reaches the handler after it returned. It waits for
// the goroutines, for handlers that ignore their context at most Config.Grace;
// such a handler goes on alone, holds no descriptor, and its answer is dropped.
// It may be called more than once.
func (b *Bridge) Close() Stats {
	b.unhook()
	b.stop(ErrClosed)
	b.child.Close()
	grace := time.NewTimer(b.cfg.Grace)
	defer grace.Stop()
	select {
	case <-b.idle:
	case <-grace.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{Answered: b.answered.Load(), Bytes: b.bytes.Load(), Malformed: b.malformed.Load()}
	s.CutOff = b.begun - s.Answered
	return s
}

// stop is the part of Close that does not wait.
func (b *Bridge) stop(cause error) {
	b.end.Do(func() {
		b.mu.Lock()
		b.closed = true
		if b.live == 0 {
			close(b.idle)
		}
		streams := b.list()
		b.mu.Unlock()
		b.cancel(cause)
		for _, s := range streams {
			s.stop(cause)
		}
		b.control.close()
	})
}

// list returns the open streams. The caller holds mu.
func (b *Bridge) list() []*stream {
	all := make([]*stream, 0, len(b.streams))
	for s := range b.streams {
		all = append(all, s)
	}
	return all
}

// enter counts one goroutine more, unless the bridge is closed. Who entered
// must leave.
func (b *Bridge) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.live++
	return true
}

func (b *Bridge) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live--
	if b.live == 0 && b.closed {
		close(b.idle)
	}
}

// begin counts one call more; false means that it is too late for it.
func (b *Bridge) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.begun++
	return true
}

// take waits for a place among the calls in flight.
func (b *Bridge) take(ctx context.Context) bool {
	select {
	case b.slots <- struct{}{}:
		return true
	default:
	}
	select {
	case b.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *Bridge) give() { <-b.slots }

func (b *Bridge) fault(err error) {
	if b.cfg.Fault != nil {
		b.cfg.Fault(err)
	}
}
