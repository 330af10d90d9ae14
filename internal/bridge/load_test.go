package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/belljar/belljar"
)

// TestFloodWithoutReading calls as fast as it can and reads no answer. The
// bridge stops reading; what it holds stays bounded, and Close is not held up.
func TestFloodWithoutReading(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
	}{{"small results", 20}, {"large results", 1 << 20}, {"errors", -1}} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int64
			h := handler(func(context.Context, string, []byte) (belljar.Value, error) {
				asked.Add(1)
				return belljar.Value{Data: make([]byte, max(c.size, 0))}, nil
			})
			cfg := Config{MaxHeld: 8 << 20}
			b := open(t, cfg, h)
			f := callFrame(1, "echo", "{}")
			if c.size < 0 {
				f = callFrame(1, "echo", "[]")
			}
			var wg sync.WaitGroup
			for range 4 {
				r := dial(t, b)
				if err := unix.SetNonblock(r.fd, true); err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					full := 0
					for full < 50 {
						n, err := unix.SendmsgN(r.fd, f, nil, nil, unix.MSG_NOSIGNAL)
						switch {
						case err == unix.EAGAIN || err == nil && n < len(f):
							full++
							time.Sleep(time.Millisecond)
						case err != nil:
							t.Errorf("write: %v", err)
							return
						default:
							full = 0
						}
						if n > 0 && n < len(f) {
							return // the socket is full in the middle of a frame
						}
					}
				})
			}
			wg.Wait()
			if held := b.held.now(); held > 8<<20 {
				t.Errorf("%d bytes are held", held)
			}
			if n := len(b.slots); n > 64 {
				t.Errorf("%d calls in flight", n)
			}
			stats := b.Close()
			if stats.Answered+stats.CutOff != asked.Load() {
				t.Errorf("%+v do not add up to %d calls", stats, asked.Load())
			}
		})
	}
}

// TestManyCallsFewRun has more calls in flight than may run, and answers of which
// as many as run would not fit: they wait, and all are answered.
func TestManyCallsFewRun(t *testing.T) {
	const each = 1 << 20
	var running atomic.Int64
	b := open(t, Config{MaxRunning: 4, MaxHeld: 8 * each}, handler(func(context.Context, string, []byte) (belljar.Value, error) {
		if n := running.Add(1); n > 4 {
			t.Errorf("%d calls run", n)
		}
		defer running.Add(-1)
		time.Sleep(5 * time.Millisecond)
		return belljar.Value{Data: make([]byte, each)}, nil
	}))
	var wg sync.WaitGroup
	for range 3 {
		r := dial(t, b)
		wg.Go(func() {
			for id := range uint32(20) {
				if err := r.write(callFrame(id, "big", "{}")); err != nil {
					t.Error(err)
					return
				}
			}
			for range 20 {
				if _, kind, body, err := r.reply(); err != nil || kind != kindText {
					t.Errorf("kind %d, %v, %.100s", kind, err, body)
					return
				}
			}
		})
	}
	wg.Wait()
	for b.held.now() != 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestBacklog makes the answers of one stream pile up beyond what may be held.
func TestBacklog(t *testing.T) {
	const each = 3 << 20
	b := open(t, Config{MaxHeld: 4 * each}, handler(func(context.Context, string, []byte) (belljar.Value, error) {
		time.Sleep(20 * time.Millisecond) // all are running before the first answer is there
		return belljar.Value{Data: make([]byte, each)}, nil
	}))
	r := dial(t, b)
	for id := range uint32(30) {
		if err := r.write(callFrame(id, "big", "{}")); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	kinds := map[byte]int{}
	seen := map[uint32]bool{}
	for range 30 {
		id, kind, body, err := r.reply()
		if err != nil {
			t.Fatal(err)
		}
		if kind == kindError && !strings.Contains(body, `"backlog"`) {
			t.Errorf("error %s", body)
		}
		kinds[kind]++
		seen[id] = true
	}
	if len(seen) != 30 || kinds[kindText] == 0 {
		t.Errorf("%d calls answered, by kind: %v", len(seen), kinds)
	}
	for b.held.now() != 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestCloseDoesNotWaitForTheDeaf closes while handlers ignore their context.
func TestCloseDoesNotWaitForTheDeaf(t *testing.T) {
	for _, n := range []int{1, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			release := make(chan struct{})
			var asked, done atomic.Int64
			h := handler(func(ctx context.Context, _ string, _ []byte) (belljar.Value, error) {
				asked.Add(1)
				defer done.Add(1)
				<-release
				if !errors.Is(context.Cause(ctx), ErrClosed) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				return belljar.Value{Data: []byte("late")}, nil
			})
			b := open(t, Config{Grace: 10 * time.Millisecond}, h)
			r := dial(t, b)
			for id := range uint32(n) {
				if err := r.write(callFrame(id, "deaf", "{}")); err != nil {
					t.Fatal(err)
				}
			}
			for asked.Load() < int64(n) {
				time.Sleep(time.Millisecond)
			}
			before := descriptors(t)
			if diff := cmp.Diff(Stats{CutOff: int64(n)}, b.Close()); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
			if after := descriptors(t); after >= before {
				t.Errorf("%d descriptors after Close, %d before", after, before)
			}
			if _, _, _, err := r.reply(); err == nil {
				t.Error("an answer after Close")
			}
			close(release)
			for done.Load() < int64(n) {
				time.Sleep(time.Millisecond)
			}
			if _, _, body, err := r.reply(); err == nil {
				t.Errorf("the late answer %q was sent", body)
			}
			if diff := cmp.Diff(Stats{CutOff: int64(n)}, b.Close()); diff != "" {
				t.Errorf("stats after the late answers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunIsCancelled ends the context that the bridge was opened with.
func TestRunIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the time is up")
	cause := make(chan error, 1)
	asked := make(chan struct{})
	b, err := Open(ctx, Config{}, handler(func(ctx context.Context, _ string, _ []byte) (belljar.Value, error) {
		close(asked)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return belljar.Value{}, ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := dial(t, b)
	if err := r.write(callFrame(1, "wait", "{}")); err != nil {
		t.Fatal(err)
	}
	<-asked
	cancel(why)
	if got := <-cause; got != why {
		t.Errorf("cause %v, want %v", got, why)
	}
	if _, _, _, err := r.reply(); err == nil {
		t.Error("an answer after the end")
	}
	if diff := cmp.Diff(Stats{CutOff: 1}, b.Close()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// TestOneSlowCallHoldsUpNobody has a slow call first, which its reader runs
// itself, and checks that those behind it are read.
func TestOneSlowCallHoldsUpNobody(t *testing.T) {
	release := make(chan struct{})
	b := open(t, Config{}, handler(func(_ context.Context, tool string, _ []byte) (belljar.Value, error) {
		if tool == "slow" {
			<-release
		}
		return belljar.Value{Data: []byte(tool)}, nil
	}))
	r := dial(t, b)
	for round := range 3 {
		id := uint32(round * 100)
		if err := r.write(callFrame(id, "slow", "{}")); err != nil {
			t.Fatal(err)
		}
		for k := range uint32(80) { // more than the calls that stay spread
			if err := r.write(callFrame(id+1+k, "quick", "{}")); err != nil {
				t.Fatal(err)
			}
			if got, _, body, err := r.reply(); got != id+1+k || body != "quick" || err != nil {
				t.Fatalf("answer %d %q %v", got, body, err)
			}
		}
		release <- struct{}{}
		if got, _, body, err := r.reply(); got != id || body != "slow" || err != nil {
			t.Fatalf("answer %d %q %v", got, body, err)
		}
	}
}

// TestHammer has many raw clients of one bridge send, hang up and be closed upon.
func TestHammer(t *testing.T) {
	for round := range 4 {
		b := open(t, Config{Grace: 5 * time.Second}, &tools{})
		var wg sync.WaitGroup
		var late atomic.Bool
		for n := range 12 {
			r := dial(t, b)
			wg.Go(func() {
				big := strings.Repeat("y", 200*n*n)
				for i := range uint32(120) {
					tool, args := "echo", `{"text":"`+big+`"}`
					if i%16 == 3 {
						tool, args = "slow", `{"seconds":0.003}`
					}
					if err := r.write(callFrame(i, tool, args)); err != nil {
						break
					}
					if n == 11 && i == 100 {
						unix.Shutdown(r.fd, unix.SHUT_RDWR) // gone in the middle
						break
					}
					if i%4 != 3 {
						continue
					}
					for range 4 {
						if _, kind, _, err := r.reply(); err != nil {
							if n != 11 && !late.Load() {
								t.Errorf("client %d: %v", n, err)
							}
							return
						} else if kind != kindText {
							t.Errorf("client %d: kind %d", n, kind)
						}
					}
				}
			})
		}
		if round%2 == 0 {
			time.Sleep(time.Duration(round) * 5 * time.Millisecond)
			late.Store(true)
			b.Close()
		}
		wg.Wait()
		b.Close()
	}
}
