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
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What follows works on the real control groups of this host, in parent groups
// made for each test, so that tests meet neither each other nor a belljar that
// runs here.

func TestRootMemoryLimitKillsAndSlotIsReused(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	if m.Version() != 1 || !m.Has("memory") || !m.Has("pids") || len(m.Missing()) != 0 {
		t.Fatalf("version %d, missing %v", m.Version(), m.Missing())
	}
	s := newSlot(t, m)
	p := startSpawner(t, s)
	for round := range 3 {
		arm(t, s, 64, 32)
		if out, exit := p.run(alloc(256)); exit != 128+9 {
			t.Fatalf("round %d: 256 MiB under a limit of 64: exit %d, %v", round, exit, out)
		}
		select {
		case <-s.OOM():
		case <-time.After(20 * time.Second):
			t.Fatal("no signal of the kill")
		}
		st := stats(t, s)
		if st.OOMKills < 1 || st.MemoryPeak != 64<<20 {
			t.Errorf("round %d: stats %+v, want a kill and a peak of 64 MiB", round, st)
		}
		if !idle(t, s) {
			t.Fatalf("round %d: not clean after a kill", round)
		}

		// The next run can have all of it, and nothing of the last is told of it.
		arm(t, s, 64, 32)
		if out, exit := p.run(alloc(58)); exit != 0 {
			t.Fatalf("round %d: 58 MiB under a limit of 64: exit %d, %v", round, exit, out)
		}
		st = stats(t, s)
		if st.OOMKills != 0 || st.MemoryPeak < 57<<20 || st.MemoryPeak > 64<<20 || st.CPU <= 0 {
			t.Errorf("round %d: stats %+v, want no kill and a peak of 57 to 64 MiB", round, st)
		}
		select {
		case <-s.OOM():
			t.Error("a signal without a kill")
		default:
		}
		if !idle(t, s) {
			t.Fatalf("round %d: not clean after a good run", round)
		}
	}
}

func TestRootLimitGoesUpAndDown(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	s := newSlot(t, m)
	p := startSpawner(t, s)
	for _, mib := range []int64{64, 160, 32, 96, 48} {
		arm(t, s, mib, 32)
		for _, file := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"} {
			data, err := os.ReadFile(filepath.Join(m.placeOf("memory").group.dir, s.name, file))
			if errors.Is(err, fs.ErrNotExist) && strings.Contains(file, "memsw") {
				continue // swap is not counted on this host
			}
			if err != nil {
				t.Fatal(err)
			}
			n, err := parseNumber(data)
			if page := int64(os.Getpagesize()); err != nil || n != (mib<<20+s.base)/page*page {
				t.Errorf("%s is %d after arming %d MiB on a base of %d (%v)", file, n, mib, s.base, err)
			}
		}
		if _, exit := p.run(alloc(int(mib) - 6)); exit != 0 {
			t.Errorf("%d MiB under a limit of %d: exit %d", mib-6, mib, exit)
		}
		if !idle(t, s) {
			t.Fatal("not clean")
		}
	}
}

func TestRootProcessLimit(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	s := newSlot(t, m)
	p := startSpawner(t, s)
	const fork = `i=0; while sleep 100 & do i=$((i+1)); echo $i; done`
	for round := range 2 {
		arm(t, s, 64, 5)
		// The forking shell stands for the init process, which is not counted.
		out, exit := p.run(fork)
		if exit == 0 || len(out) != 5 {
			t.Errorf("round %d: %d forks under a limit of 5, exit %d", round, len(out), exit)
		}
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		st := stats(t, s)
		if st.PidsRefused != 1 || st.OOMKills != 0 {
			t.Errorf("round %d: %+v, want one refusal", round, st)
		}
		// The kernel keeps one peak for the group's life, so only the first run can
		// know its own.
		if s.pids.most != nil {
			if want := []int64{5, -1}[round]; st.PidsPeak != want {
				t.Errorf("round %d: peak %d, want %d", round, st.PidsPeak, want)
			}
		}
		if !idle(t, s) {
			t.Fatal("not clean")
		}
	}
}

func TestRootTmpfsIsCounted(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	s := newSlot(t, m)
	p := startSpawner(t, s)
	file := fmt.Sprintf("/dev/shm/belljar-test-%d", os.Getpid())
	defer os.Remove(file)
	arm(t, s, 32, 16)
	out, exit := p.run(`exec dd if=/dev/zero of=` + file + ` bs=1M count=200 2>/dev/null`)
	if exit != 128+9 {
		t.Fatalf("200 MiB of tmpfs under a limit of 32: exit %d, %v", exit, out)
	}
	if st := stats(t, s); st.OOMKills != 1 {
		t.Errorf("stats %+v, want one kill", st)
	}
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if clean, err := s.Idle(short); clean || err != nil {
		t.Error("clean while the file is still charged to it", err)
	}
	if err := s.Arm(Limits{MemoryBytes: 8 << 20, Processes: 16}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("limit below what is in use: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if !idle(t, s) {
		t.Error("not clean after the file is gone")
	}
	arm(t, s, 8, 16)
}

func TestRootKill(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	s := newSlot(t, m)
	p := startSpawner(t, s)
	for _, c := range []struct{ name, script string }{
		{"sleeper", `sleep 100`},
		{"background", `sleep 100 & sleep 100 & :`},
		{"own session", `setsid sleep 100 & setsid -f sleep 100`},
		{"deaf", `trap '' TERM HUP INT; while :; do sleep 1; done`},
		{"stopped", `kill -STOP $(sh -c 'echo $PPID')`},
		// Each process forks its successor and ends: a list of ids is out of date
		// before it has been read.
		{"fork chain", `chain() { chain & }; chain; chain; chain`},
		{"fork bomb", `bomb() { bomb | bomb & }; bomb`},
	} {
		t.Run(c.name, func(t *testing.T) {
			arm(t, s, 128, 100)
			p.start("echo ready; " + c.script)
			p.ready()
			before := stats(t, s).PidsRefused
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			p.wait()
			if n, err := s.pids.max.readInt(); err != nil || n != 0 {
				t.Errorf("%d processes allowed after the end of the run (%v)", n, err)
			}
			if !idle(t, s) {
				t.Error("not clean")
			}
			if st := stats(t, s); st.OOMKills != 0 || st.PidsRefused < before {
				t.Errorf("stats %+v, %d forks refused before the kill", st, before)
			}
			arm(t, s, 128, 100)
			if out, exit := p.run(`echo fine`); exit != 0 || len(out) != 1 {
				t.Errorf("spawner cannot go on: exit %d, %v", exit, out)
			}
			if !idle(t, s) {
				t.Error("not clean")
			}
		})
	}
}

func TestRootBornInVersion2Group(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	if m.v2 == nil {
		t.Fatal("this test needs cgroup2 mounted beneath /sys/fs/cgroup")
	}
	s := newSlot(t, m)
	arm(t, s, 64, 16)
	cmd := exec.Command("/bin/sh", "-c", "sleep 100 & setsid sleep 100 & while :; do :; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: s.FD()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, "three processes", func() bool {
		pids, err := readPids(s.v2)
		return err == nil && len(pids) == 3
	})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v", err)
	}
	if !idle(t, s) {
		t.Error("not clean")
	}
}

// The way of a host with version 1 controllers: limited by the spawner's groups,
// ended by the version 2 group.
func TestRootBornInBoth(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	if m.v2 == nil {
		t.Fatal("this test needs cgroup2 mounted beneath /sys/fs/cgroup")
	}
	s := newSlot(t, m)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "BELLJAR_HELPER=both", quickExit)
	cmd.Stderr = os.Stderr
	// A copy: os.File closes what it holds, and the descriptor is the slot's.
	dup, err := syscall.Dup(s.FD())
	if err != nil {
		t.Fatal(err)
	}
	group := os.NewFile(uintptr(dup), "group")
	defer group.Close()
	cmd.ExtraFiles = []*os.File{group}
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
	if err := s.Enter(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	arm(t, s, 128, 32)
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("no child")
	}
	groups, err := os.ReadFile("/proc/" + lines.Text() + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	own := parseSelf(groups)
	for _, c := range []string{"memory", "pids", "cpu", "cpuacct", ""} {
		if g, ok := own[c]; ok && filepath.Base(g) != s.name {
			t.Errorf("child is in %q of %q", g, c)
		}
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "signal: killed" {
		t.Errorf("child: %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil { // ends by itself, so it was spared
		t.Errorf("spawner: %v", err)
	}
}

func TestRootSpawnerAlone(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	s := newSlot(t, m)
	for _, pid := range []int{0, -1, os.Getpid()} {
		if err := s.Enter(pid); err == nil {
			t.Errorf("process %d may enter", pid)
		}
	}
	p := startSpawner(t, s)
	if err := s.Enter(p.pid); err == nil {
		t.Error("a second spawner may enter")
	}
	for _, l := range []Limits{{}, {MemoryBytes: 1 << 20}, {Processes: 4}, {MemoryBytes: -1, Processes: 4}} {
		if err := s.Arm(l); err == nil {
			t.Errorf("armed with %+v", l)
		}
	}
	arm(t, s, 1<<40, 1<<40) // beyond what the kernel can express
	if _, exit := p.run("true"); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	p.sh.Kill()
	within(t, "end of the spawner", func() bool { return gone(p.pid) })
	if idle(t, s) {
		t.Error("clean without a spawner")
	}
}

func TestRootCloseEndsEverything(t *testing.T) {
	m := newManager(t, Config{Parent: newParent(t)})
	s := newSlot(t, m)
	p := startSpawner(t, s)
	arm(t, s, 64, 16)
	out, _ := p.run(`sleep 100 >/dev/null & echo $!`)
	var sleeper int
	if len(out) != 1 {
		t.Fatal(out)
	} else if _, err := fmt.Sscan(out[0], &sleeper); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, "end of the sleeper", func() bool { return gone(sleeper) })
	within(t, "end of the spawner", func() bool { return gone(p.pid) })
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if err := s.Arm(Limits{1 << 20, 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("arm after close: %v", err)
	}
	if _, err := s.Stats(); !errors.Is(err, ErrClosed) {
		t.Errorf("stats after close: %v", err)
	}
	if err := s.Kill(); !errors.Is(err, ErrClosed) {
		t.Errorf("kill after close: %v", err)
	}
	if _, err := s.Idle(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("idle after close: %v", err)
	}
	if err := s.Enter(1); !errors.Is(err, ErrClosed) {
		t.Errorf("enter after close: %v", err)
	}
	if fd := s.FD(); fd != -1 {
		t.Errorf("descriptor %d after close", fd)
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

func TestRootTwoHundredLeaveNothing(t *testing.T) {
	parent := newParent(t) // its clean-up looks for groups left behind
	m := newManager(t, Config{Parent: parent})
	fds, routines := openFDs(t), runtime.NumGoroutine()
	for range 200 {
		s := newSlot(t, m)
		arm(t, s, 64, 8)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		other, err := Open(Config{Parent: parent})
		if err != nil {
			t.Fatal(err)
		}
		newSlot(t, other)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := other.NewSlot(); !errors.Is(err, ErrClosed) {
			t.Errorf("slot of a closed manager: %v", err)
		}
	}
	if n := openFDs(t); n > fds {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	within(t, "end of all goroutines", func() bool { return runtime.NumGoroutine() <= routines })
	if len(m.slots) != 0 {
		t.Errorf("%d slots remembered", len(m.slots))
	}
}
