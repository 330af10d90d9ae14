package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/sandbox"
)

// gate holds programs until it is opened.
type gate struct{ inside, open chan struct{} }

func (g gate) program(context.Context, *sandbox.Spec, bridge.Handler) (*sandbox.Exit, error) {
	g.inside <- struct{}{}
	<-g.open
	return good(), nil
}

func TestQueueIsBounded(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits.Runs, w.cfg.Limits.Queue = 1, 1
	g := gate{make(chan struct{}, 10), make(chan struct{})}
	w.program = g.program
	e := w.engine()
	results := make(chan *belljar.Result, 2)
	run := func(events func(belljar.Event)) {
		res, err := e.Run(context.Background(), script("1"), events)
		if err != nil {
			t.Error(err)
		}
		results <- res
	}
	go run(nil)
	<-g.inside
	queued := make(chan struct{})
	go run(func(ev belljar.Event) {
		if ev.State == belljar.StateQueued {
			close(queued)
		}
	})
	<-queued
	res, err := e.Run(context.Background(), script("1"), nil)
	if err != nil || res.Refusal == nil || res.Refusal.Code != belljar.CodeBusy || res.Refusal.Reason != "1 runs are under way and 1 wait; there is no room for another." {
		t.Errorf("%+v, %v", res.Refusal, err)
	}
	w.checkResultBusy(res)
	close(g.open)
	for range 2 {
		if res := <-results; !res.OK {
			t.Errorf("result %+v", res)
		}
	}
	if res, _ := e.Run(context.Background(), script("1"), nil); !res.OK {
		t.Errorf("after the rush: %+v", res)
	}
}

// checkResultBusy is checkResult without the look at bridges of other runs.
func (w *world) checkResultBusy(res *belljar.Result) {
	w.t.Helper()
	if res.OK || res.Error == nil || res.Stage != belljar.StageAdmission || !strings.Contains(*res.Error, "call again") {
		w.t.Errorf("result %+v", res)
	}
}

func TestCancelledInQueue(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits.Runs = 1
	g := gate{make(chan struct{}, 10), make(chan struct{})}
	w.program = g.program
	e := w.engine()
	var wg sync.WaitGroup
	wg.Go(func() {
		if res, err := e.Run(context.Background(), script("1"), nil); err != nil || !res.OK {
			t.Errorf("%+v, %v", res, err)
		}
	})
	<-g.inside
	ctx, cancel := context.WithCancelCause(context.Background())
	res, err := e.Run(ctx, script("1"), func(ev belljar.Event) {
		if ev.State == belljar.StateQueued {
			cancel(errors.New("client went away"))
		}
	})
	if err != nil || res.Status != belljar.StatusCancelled || res.Stage != belljar.StageAdmission {
		t.Errorf("%+v, %v", res, err)
	}
	close(g.open)
	wg.Wait()
	if n := e.queue.waiting.Load(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// Many runs at once: never more than allowed, every one gets its own answer and its
// own records, on good ways out and bad ones.
func TestHammer(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits.Runs = 3
	var inside, most atomic.Int64
	w.program = func(ctx context.Context, s *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		n := inside.Add(1)
		defer inside.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		source := string(s.Files[0].Data)
		switch {
		case strings.HasPrefix(source, "panic"):
			panic("in " + source)
		case strings.HasPrefix(source, "fail"):
			return nil, errDisk
		case strings.HasPrefix(source, "slow"):
			x := good()
			x.Cause, x.Wait = sandbox.CauseTimeout, 9
			return x, nil
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				v, err := h.Call(ctx, "read_file", fmt.Appendf(nil, `{"path":%q,"n":%d}`, source, i))
				if err != nil || !strings.Contains(string(v.Data), fmt.Sprintf("%q", source)) {
					t.Errorf("%s got %q, %v", source, v.Data, err)
				}
			})
		}
		wg.Wait()
		fmt.Fprint(s.Stdout, source)
		return good(), nil
	}
	e := w.engine()
	want := map[string]belljar.Status{"good": "exited", "panic": "failed", "fail": "failed", "slow": "timed_out"}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 6 {
				for word, status := range want {
					source := fmt.Sprintf("%s %d %d", word, i, j)
					var told strings.Builder
					res, err := e.Run(context.Background(), script(source), func(ev belljar.Event) { told.Write(ev.Data) })
					if err != nil || res.Status != status || status == "exited" && (res.Stdout != source || told.String() != source || res.ToolCalls.Count != 4) {
						t.Errorf("%s: %+v, %v", source, res, err)
					}
				}
			}
		})
	}
	wg.Wait()
	if most.Load() > 3 {
		t.Errorf("%d at once", most.Load())
	}
	ids, runs, calls := map[string]bool{}, 0, 0
	for _, r := range w.journal.records() {
		if r.Event == "run" {
			runs++
			ids[r.Run] = true
		} else {
			calls++
		}
	}
	if runs != 16*6*4 || len(ids) != runs || calls != 16*6*4 {
		t.Errorf("%d runs, %d ids, %d calls", runs, len(ids), calls)
	}
	if n := len(w.metrics.lines); n != runs+calls {
		t.Errorf("%d metrics", n)
	}
	if w.bridges != 0 || w.metrics.active != 0 {
		t.Errorf("%d bridges are open, %d runs are active", w.bridges, w.metrics.active)
	}
}
