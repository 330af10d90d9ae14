package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// gone waits until no process has that id.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return // dead; whoever adopted it has still to notice
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// leftovers waits until no goroutine of a client is left, and names them if they
// stay.
func leftovers(t *testing.T) {
	t.Helper()
	var stacks []string
	for range 500 {
		buf := make([]byte, 1<<20)
		stacks = nil
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "upstream.(*") || strings.Contains(g, "modelcontextprotocol/go-sdk") || strings.Contains(g, "os/exec.") {
				stacks = append(stacks, g)
			}
		}
		if len(stacks) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left:\n%s", len(stacks), strings.Join(stacks, "\n\n"))
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestStartsOnce(t *testing.T) {
	c := start(t, "good")
	if running, why := c.State(); running || why != nil {
		t.Errorf("before the first use: %v, %v", running, why)
	}
	var wg sync.WaitGroup
	pids := make([]string, 16)
	for i := range pids {
		wg.Go(func() {
			v, err := c.Call(context.Background(), "pid", nil)
			if err != nil {
				t.Error(err)
			}
			pids[i] = string(v.Data)
		})
	}
	wg.Wait()
	for _, pid := range pids {
		if pid != pids[0] {
			t.Fatalf("more than one server was started: %v", pids)
		}
	}
	if running, why := c.State(); !running || why != nil {
		t.Errorf("in use: %v, %v", running, why)
	}
}

func TestSlow(t *testing.T) {
	c := start(t, "good", func(c *Config) { c.CallTimeout = 500 * time.Millisecond; c.StartTimeout = 20 * time.Second })
	if _, _, err := c.List(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, err := call(t, c, "slow", "{}")
	wantErr(t, err, "timeout", "within 500ms")

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Call(ctx, "slow", nil)
	wantErr(t, err, "timeout", "run's time")

	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = c.Call(ctx, "slow", nil)
	wantErr(t, err, "cancelled", "cancelled")

	if v, err := call(t, c, "text", "{}"); err != nil || string(v.Data) != "hello" {
		t.Errorf("after slow calls: %q, %v", v.Data, err)
	}
}

func TestDies(t *testing.T) {
	c := start(t, "good", func(c *Config) {
		c.Env = append(c.Env, "TOKEN=hunter22")
		c.Secrets = []string{"hunter22"}
	})
	for range 3 {
		_, err := call(t, c, "die", "{}")
		wantErr(t, err, "failed", "ended by itself (exit status 7)")
		if strings.Contains(err.Error(), "fatal") {
			t.Errorf("a script is told what the server wrote: %v", err)
		}
	}
	v, err := call(t, c, "text", "{}")
	if err != nil || string(v.Data) != "hello" {
		t.Fatalf("not started again: %v", err)
	}
	_, err = call(t, c, "die", "{}")
	wantErr(t, err, "failed", "exit status 7")
	_, why := c.State()
	if why == nil || !strings.Contains(why.Error(), "fatal: token [redacted] [31mexpired") {
		t.Errorf("the operator is told %v", why)
	}
	// The fourth short life in a row: now it has to wait.
	_, err = call(t, c, "text", "{}")
	wantErr(t, err, "failed", "exit status 7")
}

func TestDiesIdle(t *testing.T) {
	c := start(t, "good")
	v, err := call(t, c, "pid", "{}")
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(v.Data))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	for range 500 {
		if running, _ := c.State(); !running {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if v, err := call(t, c, "text", "{}"); err != nil || string(v.Data) != "hello" {
		t.Errorf("after its death: %q, %v", v.Data, err)
	}
}

func TestNoCommand(t *testing.T) {
	c := start(t, "good", func(c *Config) { c.Command = "no-such-command-here" })
	for range 2 { // the second answer comes from the pause
		_, err := call(t, c, "text", "{}")
		wantErr(t, err, "failed", "could not be started")
	}
}

func TestCloseEndsTheTree(t *testing.T) {
	before := descriptors(t)
	c := start(t, "good")
	var pids []int
	for _, tool := range []string{"pid", "child"} {
		v, err := call(t, c, tool, "{}")
		if err != nil {
			t.Fatal(err)
		}
		pid, _ := strconv.Atoi(string(v.Data))
		pids = append(pids, pid)
	}
	// A call that is under way ends with it.
	slow := make(chan error, 1)
	go func() {
		_, err := c.Call(context.Background(), "slow", nil)
		slow <- err
	}()
	time.Sleep(50 * time.Millisecond)
	c.Close()
	wantErr(t, <-slow, "failed", "was closed")
	for _, pid := range pids {
		gone(t, pid)
	}
	_, err := call(t, c, "text", "{}")
	wantErr(t, err, "failed", "has been closed")
	c.Close() // twice is fine
	leftovers(t)
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors after, %d before", after, before)
	}
}

func TestCloseWhileStarting(t *testing.T) {
	c := start(t, "silent")
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(context.Background(), "text", nil)
		failed <- err
	}()
	for range 500 {
		c.mu.Lock()
		under := c.starting != nil
		c.mu.Unlock()
		if under {
			break
		}
		time.Sleep(time.Millisecond)
	}
	c.Close()
	if err := <-failed; err == nil {
		t.Error("the call succeeded")
	}
}

// TestKilledParent kills a process that has a server running, as kill -9 of the
// engine does, and looks that the server is gone.
func TestKilledParent(t *testing.T) {
	if os.Getenv("UPSTREAM_TEST_PARENT") != "" {
		v, err := call(t, start(t, "good"), "pid", "{}")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\npid %s\n", v.Data)
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	p, err := startProcess(Config{Command: os.Args[0], Args: []string{"-test.run=^TestKilledParent$"}, Env: append(os.Environ(), "UPSTREAM_TEST_PARENT=1")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop(0)
	var pid int
	out := make([]byte, 4096)
	for n := 0; ; {
		k, err := p.stdout.Read(out[n:])
		n += k
		if i := strings.Index(string(out[:n]), "pid "); i >= 0 {
			if _, e := fmt.Sscanf(string(out[i:n]), "pid %d\n", &pid); e == nil && strings.Contains(string(out[i:n]), "\n") {
				break
			}
		}
		if err != nil {
			t.Fatalf("the parent said %q: %v, %s", out[:n], err, p.stderr)
		}
	}
	gone(t, pid)
}
