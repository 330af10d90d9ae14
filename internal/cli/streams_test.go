package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/belljar/belljar"
)

func chunk(stream, text string) belljar.Event {
	return belljar.Event{Type: stream, Data: []byte(text)}
}

func TestOutputComesThrough(t *testing.T) {
	const wild = "plain \x1b[2J\x9b31m \xff end\n"
	b := newBench(t)
	src := b.file(t, "a.py", "x\n")
	b.engine.run = func(_ context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
		buf := []byte(wild)
		events(belljar.Event{Type: "stdout", Data: buf})
		copy(buf, "xxxxxxxxxxxx") // the sender uses its buffer again
		events(chunk("stderr", "oops\n"))
		events(belljar.Event{Type: "call", Data: []byte("no output")})
		events(chunk("stdout", "more"))
		return exited(req, 3), nil
	}
	if code := b.call(t, "run", src); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if got := b.stdout.String(); got != wild+"more" {
		t.Errorf("raw stdout %q", got)
	}
	if got := b.stderr.String(); got != "oops\n" {
		t.Errorf("raw stderr %q", got)
	}
	b.outTTY = true
	b.call(t, "run", src)
	if got := b.stdout.String(); strings.ContainsAny(got, "\x1b\x9b\xff") || !strings.HasPrefix(got, "plain ") || !strings.HasSuffix(got, "more") {
		t.Errorf("stdout on a terminal %q", got)
	}
}

func TestJSONShowsTheResultAlone(t *testing.T) {
	b := newBench(t)
	src := b.file(t, "a.py", "x\n")
	b.engine.run = func(_ context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
		if events != nil {
			t.Error("events are asked for")
		}
		res := exited(req, 7)
		res.Stdout = "<out> & \x1b"
		return res, nil
	}
	if code := b.call(t, "run", "--json", "--script", src); code != 7 {
		t.Errorf("exit code %d", code)
	}
	if got := b.stdout.String(); !strings.Contains(got, `"stdout":"<out> & \u001b"`) || strings.Count(got, "\n") != 1 {
		t.Errorf("stdout %q", got)
	}
	if b.stderr.Len() > 0 {
		t.Errorf("stderr %q", b.stderr)
	}
}

// gone is a pipe whose reader has left.
type gone struct{}

func (gone) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

func TestReaderGone(t *testing.T) {
	b := newBench(t)
	src := b.file(t, "a.py", "x\n")
	b.out = gone{}
	b.engine.run = func(ctx context.Context, _ *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
		events(chunk("stdout", "x"))
		<-ctx.Done() // nobody reads: the run is ended
		if !errors.Is(context.Cause(ctx), syscall.EPIPE) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		return stopped(belljar.StatusCancelled, "the run was cancelled"), nil
	}
	if code := b.call(t, "run", src); code != 141 {
		t.Errorf("exit code %d", code)
	}
	if b.stderr.Len() > 0 {
		t.Errorf("stderr %q", b.stderr)
	}
	for _, args := range [][]string{{"version"}, {"doctor"}, {"run", "--json", src}} {
		b.engine.run, b.engine.checks = nil, []belljar.Check{{Name: "x", State: belljar.CheckOK}}
		if code := b.call(t, args...); code != 141 || b.stderr.Len() > 0 {
			t.Errorf("%v: exit code %d, stderr %q", args, code, b.stderr)
		}
	}
}

func TestStreamsHammer(t *testing.T) {
	b := newBench(t)
	s := newStreams(b.app, func(error) {})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				s.event(chunk("stdout", "ab"))
				s.event(chunk("stderr", "cd"))
			}
		})
	}
	wg.Wait()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if b.stdout.String() != strings.Repeat("ab", 4000) || b.stderr.String() != strings.Repeat("cd", 4000) {
		t.Errorf("%d and %d bytes came through, or torn", b.stdout.Len(), b.stderr.Len())
	}
}
