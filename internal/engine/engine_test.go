package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/google/go-cmp/cmp"
)

func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.program = func(_ context.Context, s *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		fmt.Fprint(s.Stdout, "a\xc3")
		fmt.Fprint(s.Stderr, "warn")
		if _, err := h.Call(context.Background(), "read_file", json.RawMessage(`{}`)); err != nil {
			return nil, err
		}
		fmt.Fprint(s.Stdout, "\xa9")
		return good(), nil
	}
	var got []string
	res, err := w.engine().Run(context.Background(), script("1"), func(ev belljar.Event) {
		line := fmt.Sprintf("%s %s%s", ev.Type, ev.State, ev.Data)
		if ev.Call != nil {
			line += fmt.Sprintf("%s %v", ev.Call.Tool, ev.Call.OK)
		}
		if ev.Run == "" || ev.Time.IsZero() {
			t.Errorf("event %+v", ev)
		}
		got = append(got, line)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"state running", "stdout a\xc3", "stderr warn", "call read_file true", "stdout \xa9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if res.Stdout != "aé" {
		t.Errorf("stdout %q", res.Stdout)
	}
}

// A watcher that panics ends neither the run nor the program.
func TestEventsPanic(t *testing.T) {
	w := newWorld(t)
	w.program = func(_ context.Context, s *sandbox.Spec, _ bridge.Handler) (*sandbox.Exit, error) {
		var wg sync.WaitGroup
		wg.Go(func() { fmt.Fprint(s.Stdout, "text") })
		wg.Wait()
		fmt.Fprint(s.Stdout, " more")
		return good(), nil
	}
	n := 0
	res, err := w.engine().Run(context.Background(), script("1"), func(ev belljar.Event) {
		if ev.Type == "stdout" {
			n++
			panic("watcher broke")
		}
	})
	if err != nil || !res.OK || res.Stdout != "text more" || n != 1 {
		t.Errorf("%+v, %v; told %d times", res, err, n)
	}
	if !strings.Contains(w.log.String(), "watcher broke") {
		t.Errorf("log: %s", w.log)
	}
}

func TestClose(t *testing.T) {
	w := newWorld(t)
	started, release := make(chan struct{}), make(chan struct{})
	w.program = func(context.Context, *sandbox.Spec, bridge.Handler) (*sandbox.Exit, error) {
		close(started)
		<-release
		return good(), nil
	}
	e := w.engine()
	done := make(chan *belljar.Result)
	go func() {
		res, _ := e.Run(context.Background(), script("1"), nil)
		done <- res
	}()
	<-started
	closed := make(chan struct{})
	go func() { e.Close(); close(closed) }()
	for { // until Close has begun
		if _, err := e.Run(context.Background(), &belljar.Request{}, nil); errors.Is(err, ErrClosed) {
			break
		}
	}
	select {
	case <-closed:
		t.Error("Close did not wait for the run")
	default:
	}
	close(release)
	if res := <-done; !res.OK {
		t.Errorf("result %+v", res)
	}
	<-closed
}

func TestBounds(t *testing.T) {
	e := newWorld(t).engine()
	for _, lang := range []string{"python", "py", "cobol", ""} {
		if standard, ceiling := e.Bounds(belljar.KindScript, lang); standard.OutputChars != 6000 || ceiling.Timeout <= standard.Timeout {
			t.Errorf("%q: %+v, %+v", lang, standard, ceiling)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	registry, err := language.Open()
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	parts := Parts{Languages: registry, Toolchains: w, Sandbox: w, Policy: p, Tools: tools{w}, Journal: w.journal, OpenBridge: w.openBridge}
	for _, cfg := range []Config{{Minimum: "paper"}, {Limits: LimitsConfig{Runs: -1}}, {Limits: LimitsConfig{Runs: 61}}} {
		_, err := New(cfg, parts)
		var refusal *belljar.Refusal
		if !errors.As(err, &refusal) || refusal.Code != belljar.CodeBadConfig {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	e, err := New(Config{}, parts) // without metrics and log
	if err != nil {
		t.Fatal(err)
	}
	if res, err := e.Run(context.Background(), script("1"), nil); err != nil || res.Refusal.Code != belljar.CodeUnknownLanguage {
		t.Errorf("%+v, %v", res, err)
	}
}
