package bridge

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestBudget(t *testing.T) {
	g := newBudget(100, 2, 1000) // 25 for each call that runs
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan bool)
	if !g.wait(ctx, 1000) {
		t.Fatal("one alone must always fit")
	}
	go func() { done <- g.wait(ctx, 10) }()
	g.release(1000)
	if !<-done {
		t.Error("a release did not let the next one in")
	}
	if !g.begin(ctx) || !g.begin(ctx) {
		t.Fatal("there is room for two calls")
	}
	go func() { done <- g.begin(ctx) }()
	if !g.settle(10, 60) { // 60 held, 25 kept free
		t.Error("an answer that fits was dropped")
	}
	if g.settle(0, 50) {
		t.Error("an answer went beyond what may be held")
	}
	if !<-done {
		t.Error("the end of a call did not let the next one begin")
	}
	go func() { done <- g.begin(ctx) }() // no room: 60 held, 25 kept free
	if !g.settle(0, 30) {
		t.Error("an answer that fits was dropped")
	}
	g.answered(60)
	if !<-done {
		t.Error("an answer that was read did not let the next call begin")
	}
	if !g.settle(0, 70) || g.now() != 100 {
		t.Errorf("answers may fill all; %d are held", g.now())
	}
	go func() { done <- g.wait(ctx, 1) }()
	go func() { done <- g.begin(ctx) }()
	cancel()
	if <-done || <-done {
		t.Error("waiting did not end with the context")
	}
	g.answered(30)
	g.answered(70)
	if !g.begin(context.Background()) || !g.settle(0, 1000) {
		t.Error("one answer alone must always fit")
	}
	g.answered(1000)
	if g.now() != 0 || g.answers != 0 || g.running != 0 {
		t.Errorf("%d bytes are held, %d of answers, %d calls run", g.now(), g.answers, g.running)
	}
}

func TestBudgetHammer(t *testing.T) {
	const most = 1000
	g := newBudget(most, 5, 100)
	var wg sync.WaitGroup
	var running atomic.Int64
	for n := range 16 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			for i := range 500 {
				args, size := int64(n*i%200+1), int64(n*i%400+1)
				if !g.wait(ctx, args) {
					continue
				}
				if !g.begin(ctx) {
					g.release(args)
					continue
				}
				if now := running.Add(1); now > 5 {
					t.Errorf("%d run", now)
				}
				running.Add(-1)
				if fits := g.settle(args, size); fits {
					if now := g.now(); now > most {
						t.Errorf("%d held", now)
					}
					g.answered(size)
				} else if size <= 100 {
					t.Errorf("an answer of %d was dropped", size)
				}
				if i == 450 && n%4 == 0 {
					cancel()
				}
			}
			cancel()
		})
	}
	wg.Wait()
	if g.now() != 0 || g.answers != 0 || g.running != 0 {
		t.Errorf("%d bytes are held at the end, %d of answers, %d calls run", g.now(), g.answers, g.running)
	}
}

// TestSocketHammer shuts sockets while others are blocked in reads and writes.
func TestSocketHammer(t *testing.T) {
	before := descriptors(t)
	for range 50 {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := &socket{fd: fds[0]}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := s.Read(make([]byte, 10)); err != io.EOF && err != os.ErrClosed {
					t.Errorf("read: %v", err)
				}
			})
			wg.Go(func() {
				for {
					if _, err := s.send([][]byte{make([]byte, 100_000)}, 0); err != nil {
						if err != unix.EPIPE && err != os.ErrClosed {
							t.Errorf("send: %v", err)
						}
						return
					}
				}
			})
			wg.Go(func() { time.Sleep(time.Millisecond); s.shut() })
		}
		wg.Wait()
		unix.Close(fds[1])
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	for name, c := range map[string]Config{
		"frame above the hard cap": {MaxFrame: hardFrame + 1},
		"negative result":          {MaxResult: -1},
		"negative held":            {MaxHeld: -1},
		"negative in flight":       {MaxInFlight: -1},
		"negative running":         {MaxRunning: -1},
		"negative streams":         {MaxStreams: -1},
		"name above its byte":      {MaxName: 256},
		"depth":                    {MaxDepth: 1 << 30},
		"grace":                    {Grace: -1},
	} {
		if b, err := Open(context.Background(), c, nil); err == nil {
			b.Close()
			t.Errorf("%s: taken", name)
		}
	}
}
