//go:build linux

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hammer uses one manager and one shared slot from many goroutines, and closes
// both under their hands. Errors other than "closed" are failures.
func hammer(t *testing.T, m *Manager, rounds int) {
	t.Helper()
	shared, err := m.NewSlot()
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	each := func(n int, f func()) {
		for range n {
			all.Go(func() {
				for range rounds {
					f()
				}
			})
		}
	}
	each(2, func() {
		s, err := m.NewSlot()
		if check("new slot", err); err != nil {
			return
		}
		check("arm", s.Arm(Limits{MemoryBytes: 1 << 26, Processes: 9}))
		_, err = s.Stats()
		check("stats", err)
		check("close", s.Close())
	})
	each(2, func() { check("arm", shared.Arm(Limits{MemoryBytes: 1 << 26, Processes: 9})) })
	each(2, func() { _, err := shared.Stats(); check("stats", err) })
	each(1, func() { check("kill", shared.Kill()) })
	each(1, func() { _, err := shared.Idle(ctx); check("idle", err) })
	each(1, func() {
		shared.FD()
		select {
		case <-shared.OOM():
		default:
		}
	})
	each(1, func() {
		_, err := m.Sweep(ctx)
		check("sweep", err)
		m.Missing()
		m.Checks()
		m.Has("memory")
	})
	all.Go(func() {
		time.Sleep(20 * time.Millisecond) // into the middle of it
		check("close", shared.Close())
	})
	for range 2 {
		all.Go(func() {
			time.Sleep(40 * time.Millisecond)
			check("close manager", m.Close())
		})
	}
	all.Wait()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if len(m.slots) != 0 {
		t.Errorf("%d slots remembered", len(m.slots))
	}
}

func TestHammerV2(t *testing.T) {
	f := newFakeTree(t, "/a", "cpu memory pids", "cpu memory pids")
	hammer(t, f.open(), 20)
	if left, err := subgroups(f.root); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestRootHammer(t *testing.T) {
	parent := newParent(t)
	m := newManager(t, Config{Parent: parent})
	hammer(t, m, 30)
}

// A slot in use while it is closed, killed and asked.
func TestRootHammerRuns(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	for range 3 {
		s := newSlot(t, m)
		p := startSpawner(t, s)
		arm(t, s, 64, 50)
		p.start(`echo ready; bomb() { bomb | bomb & }; bomb`)
		p.ready()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := s.Kill(); err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			if _, err := s.Idle(t.Context()); err != nil && !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		})
		all.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
	}
}

func BenchmarkRun(b *testing.B) {
	m, err := Open(Config{Parent: "/"})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	if m.Version() == 0 {
		b.Fatal(fmt.Errorf("this benchmark needs control groups of its own: %v", m.Missing()))
	}
	s, err := m.NewSlot()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	if err := s.Enter(cmd.Process.Pid); err != nil {
		b.Fatal(err)
	}
	limits := []Limits{{MemoryBytes: 64 << 20, Processes: 32}, {MemoryBytes: 128 << 20, Processes: 64}}
	for _, step := range []struct {
		name string
		do   func(i int) error
	}{
		{"Arm", func(int) error { return s.Arm(limits[0]) }},
		{"ArmOther", func(i int) error { return s.Arm(limits[i%2]) }},
		{"Stats", func(int) error { _, err := s.Stats(); return err }},
		{"Kill", func(int) error { return s.Kill() }},
		{"Idle", func(int) error { _, err := s.Idle(context.Background()); return err }},
		{"NewSlot", func(int) error {
			n, err := m.NewSlot()
			if err != nil {
				return err
			}
			return n.Close()
		}},
		{"Open", func(int) error {
			n, err := Open(Config{Parent: "/"})
			if err != nil {
				return err
			}
			return n.Close()
		}},
	} {
		b.Run(step.name, func(b *testing.B) {
			for i := range b.N {
				if err := step.do(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
