package jar

import (
	"context"
	"log/slog"
	"sync"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/audit"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/engine"
	"github.com/belljar/belljar/internal/sandbox"
)

// lazy opens something when it is first asked for. A failure is tried again by the
// next who asks: what was wrong may have been corrected.
type lazy[T any] struct {
	make func() (T, error)

	mu     sync.Mutex
	opened bool
	closed bool
	value  T
}

func (l *lazy[T]) open() (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var none T
	if l.closed {
		return none, ErrClosed
	}
	if !l.opened {
		v, err := l.make()
		if err != nil {
			return none, err
		}
		l.value, l.opened = v, true
	}
	return l.value, nil
}

// shut closes what was opened, if anything was, and lets nobody open it again.
func (l *lazy[T]) shut(end func(T) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !l.opened {
		l.closed = true
		return nil
	}
	l.closed = true
	return end(l.value)
}

// lazyJournal is the journal as the engine wants it.
type lazyJournal struct{ lazy[*audit.Journal] }

func newLazyJournal(cfg audit.Config) *lazyJournal {
	return &lazyJournal{lazy[*audit.Journal]{make: func() (*audit.Journal, error) { return audit.Open(cfg) }}}
}

func (l *lazyJournal) Ready(ctx context.Context) error {
	j, err := l.open()
	if err != nil {
		return err
	}
	return j.Ready(ctx)
}

func (l *lazyJournal) Append(ctx context.Context, r belljar.Record) error {
	j, err := l.open()
	if err != nil {
		return err
	}
	return j.Append(ctx, r)
}

func (l *lazyJournal) Flush(ctx context.Context) error {
	j, err := l.open()
	if err != nil {
		return err
	}
	return j.Flush(ctx)
}

func (l *lazyJournal) close() error { return l.shut((*audit.Journal).Close) }

// lazySandbox is the sandbox as the engine wants it.
type lazySandbox struct{ lazy[*sandbox.Host] }

func newLazySandbox(cfg sandbox.Config) *lazySandbox {
	return &lazySandbox{lazy[*sandbox.Host]{make: func() (*sandbox.Host, error) { return sandbox.Open(cfg) }}}
}

func (l *lazySandbox) Run(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
	h, err := l.open()
	if err != nil {
		return nil, err
	}
	return h.Run(ctx, s)
}

func (l *lazySandbox) close() error { return l.shut((*sandbox.Host).Close) }

// openBridge makes the bridges of runs. Faults in them are logged here, since a
// bridge has no other place to tell them.
func openBridge(cfg bridge.Config, log *slog.Logger) func(context.Context, bridge.Handler) (engine.Bridge, error) {
	cfg.Fault = func(err error) { log.Error("bridge", "err", err) }
	return func(ctx context.Context, h bridge.Handler) (engine.Bridge, error) {
		b, err := bridge.Open(ctx, cfg, h)
		if err != nil {
			return nil, err // not b: a nil *Bridge would be no nil Bridge
		}
		return b, nil
	}
}
