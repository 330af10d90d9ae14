package bridge

import (
	"context"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestBudget(t *testing.T) {
	g := newBudget(100)
	ctx, cancel := context.WithCancel(context.Background())
	if !g.wait(ctx, 1000) {
		t.Fatal("one alone must always fit")
	}
	if g.try(1) {
		t.Error("a result went beyond what may be held")
	}
	done := make(chan bool)
	go func() { done <- g.wait(ctx, 10) }()
	g.release(1000)
	if !<-done {
		t.Error("a release did not let the next one in")
	}
	if !g.try(90) || g.try(1) {
		t.Error("results may fill all, and not more")
	}
	go func() { done <- g.wait(ctx, 1) }()
	cancel()
	if <-done {
		t.Error("waiting did not end with the context")
	}
	g.release(90)
	g.release(10)
	if g.now() != 0 {
		t.Errorf("%d bytes are held", g.now())
	}
}

func TestBudgetHammer(t *testing.T) {
	const most = 1000
	g := newBudget(most)
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			for i := range 500 {
				size := int64(n*i%400 + 1)
				if g.wait(ctx, size) {
					g.release(size)
				}
				if g.try(size) {
					if now := g.now(); now > most {
						t.Errorf("%d held", now)
					}
					g.release(size)
				}
				if i == 450 && n%4 == 0 {
					cancel()
				}
			}
			cancel()
		})
	}
	wg.Wait()
	if g.now() != 0 {
		t.Errorf("%d bytes are held at the end", g.now())
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
