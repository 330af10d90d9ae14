package engine

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/belljar/belljar"
)

// feed tells a run's events to whoever watches: one at a time, and none after the
// end.
type feed struct {
	run    string
	log    *slog.Logger
	events func(belljar.Event)

	mu    sync.Mutex
	ended bool
}

// send tells one event. A watcher that panics gets no more: it is called from
// goroutines of the sandbox, where the panic would end the whole program.
func (f *feed) send(ev belljar.Event) {
	if f.events == nil {
		return
	}
	ev.Run, ev.Time = f.run, time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			f.ended = true
			f.log.Error("whoever watches a run panicked", "run", f.run, "err", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	f.events(ev)
}

func (f *feed) state(s belljar.State) { f.send(belljar.Event{Type: "state", State: s}) }

func (f *feed) call(c belljar.ToolCall) { f.send(belljar.Event{Type: "call", Call: &c}) }

// end waits for an event that is being told and tells no more.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}

// stream gives a writer that keeps the bytes and tells them.
func (f *feed) stream(name string, keep io.Writer) io.Writer {
	if f.events == nil {
		return keep
	}
	return &tee{feed: f, name: name, keep: keep}
}

type tee struct {
	feed *feed
	name string
	keep io.Writer
}

func (t *tee) Write(p []byte) (int, error) {
	n, err := t.keep.Write(p)
	t.feed.send(belljar.Event{Type: t.name, Data: p})
	return n, err
}
