package bridge

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// now is what is held at this moment.
func (g *budget) now() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

func (b *Bridge) streamCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.streams)
}

// descriptors counts the open descriptors of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// ours returns the stacks of goroutines that are in this package.
func ours() string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var found []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "internal/bridge.") && !strings.Contains(g, "TestMain") {
			found = append(found, g)
		}
	}
	return strings.Join(found, "\n\n")
}

// TestMain checks that nothing is left: no goroutine and no descriptor.
func TestMain(m *testing.M) {
	sockets := func() int {
		n := 0
		all, _ := os.ReadDir("/proc/self/fd")
		for _, e := range all {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
				n++
			}
		}
		return n
	}
	before := sockets()
	code := m.Run()
	for end := time.Now().Add(10 * time.Second); ours() != "" && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if left := ours(); left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	if after := sockets(); after > before {
		fmt.Fprintf(os.Stderr, "%d sockets are left\n", after-before)
		code = 1
	}
	os.Exit(code)
}
