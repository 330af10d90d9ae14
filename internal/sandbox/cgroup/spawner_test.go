//go:build linux

package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belljar/belljar/internal/testkit"
)

// What follows works on the real control groups of this host, in parent groups
// made for each test, so that tests meet neither each other nor a belljar that
// runs here.

var testParents atomic.Int64

// needV1 is for tests that make control groups of version 1.
func needV1(t *testing.T) {
	t.Helper()
	testkit.Need(t, "root", "cgroup-v1")
}

// newParent makes a group in each hierarchy and gives its name as Config.Parent.
// When the test ends there must be nothing left in it.
func newParent(t *testing.T) string {
	t.Helper()
	needV1(t)
	hs, err := findHierarchies(Config{})
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("/belljar-test-%d-%d", os.Getpid(), testParents.Add(1))
	for _, h := range hs {
		dir := h.path(name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			left, err := subgroups(dir)
			if err != nil || len(left) != 1 {
				t.Errorf("groups left behind: %v, %v", left, err)
			}
			for _, d := range left {
				if err := kernelOps().removeGroup(d, 2*time.Second); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return name
}

func newManager(t *testing.T, cfg Config) *Manager {
	t.Helper()
	m, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func newSlot(t *testing.T, m *Manager) *Slot {
	t.Helper()
	s, err := m.NewSlot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spawner stands in for the engine's: one small process that forks each run.
type spawner struct {
	t   *testing.T
	pid int
	sh  *os.Process
	in  io.WriteCloser
	out *bufio.Scanner
}

func startSpawner(t *testing.T, s *Slot) *spawner {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "BELLJAR_HELPER=warden", quickExit)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &spawner{t: t, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(func() {
		if p.sh != nil {
			p.sh.Kill()
		}
		in.Close()
		cmd.Wait()
	})
	if !p.out.Scan() {
		t.Fatalf("no shell: %v", p.out.Err())
	}
	if p.pid, err = strconv.Atoi(p.out.Text()); err != nil {
		t.Fatal(err)
	}
	if p.sh, err = os.FindProcess(p.pid); err != nil {
		t.Fatal(err)
	}
	if err := s.Enter(p.pid); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *spawner) start(script string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, script+"\n"); err != nil {
		p.t.Fatalf("spawner is gone: %v", err)
	}
}

func (p *spawner) ready() {
	p.t.Helper()
	if !p.out.Scan() || p.out.Text() != "ready" {
		p.t.Fatalf("run said %q, %v", p.out.Text(), p.out.Err())
	}
}

// wait gives what the run wrote, and how it ended.
func (p *spawner) wait() (lines []string, exit int) {
	p.t.Helper()
	for p.out.Scan() {
		if n, err := fmt.Sscanf(p.out.Text(), "done %d", &exit); n == 1 && err == nil {
			return lines, exit
		}
		lines = append(lines, p.out.Text())
	}
	p.t.Fatalf("spawner ended: %v", p.out.Err())
	return nil, 0
}

func (p *spawner) run(script string) ([]string, int) {
	p.t.Helper()
	p.start(script)
	return p.wait()
}

// alloc takes memory and touches all of it.
func alloc(mib int) string {
	return fmt.Sprintf(`exec dd if=/dev/zero of=/dev/null bs=%dM count=1 2>/dev/null`, mib)
}

func arm(t *testing.T, s *Slot, mib, processes int64) {
	t.Helper()
	if err := s.Arm(Limits{MemoryBytes: mib << 20, Processes: processes}); err != nil {
		t.Fatal(err)
	}
}

func stats(t *testing.T, s *Slot) Stats {
	t.Helper()
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func idle(t *testing.T, s *Slot) bool {
	t.Helper()
	clean, err := s.Idle(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !clean {
		usage, _ := s.mem.usage()
		cached, _ := s.mem.cached()
		current, _ := s.pids.current.readInt()
		alone, _ := s.alone()
		t.Logf("not idle: alone %t, %d bytes charged (%d cached) on a base of %d, %d processes", alone, usage, cached, s.base, current)
	}
	return clean
}

// within waits for something that the kernel does in its own time.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

func gone(pid int) bool {
	_, state, err := procStat(pid)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || state == 'Z'
}
