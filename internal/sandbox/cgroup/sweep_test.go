//go:build linux

package cgroup

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// startOwner runs a belljar of its own, with one process in a slot.
func startOwner(t *testing.T, parent string) (owner *exec.Cmd, inside int) {
	t.Helper()
	owner = exec.Command("/proc/self/exe")
	owner.Env = append(os.Environ(), "BELLJAR_HELPER=owner", quickExit, "BELLJAR_PARENT="+parent)
	owner.Stderr = os.Stderr
	if _, err := owner.StdinPipe(); err != nil { // held open until Wait
		t.Fatal(err)
	}
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		owner.Process.Kill()
		owner.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("owner: %v", err)
	}
	if _, err := fmt.Sscan(line, &inside); err != nil {
		t.Fatal(err)
	}
	return owner, inside
}

func groupsIn(t *testing.T, m *Manager) (all []string) {
	t.Helper()
	for _, h := range m.hierarchies {
		entries, err := os.ReadDir(h.path(m.cfg.Parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, filepath.Join(h.path(m.cfg.Parent), e.Name()))
			}
		}
	}
	return all
}

func TestRootSweep(t *testing.T) {
	parent := newParent(t)
	m := newManager(t, Config{Parent: parent})
	living, livingInside := startOwner(t, parent)
	dead, deadInside := startOwner(t, parent)
	// Names that are only like ours.
	hs := m.hierarchies
	for _, h := range hs {
		for _, name := range []string{"belljar-999999999-1-1x", "belljar-0-1-1", "other"} {
			dir := filepath.Join(h.path(parent), name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(dir)
		}
	}
	// One whose owner we cannot see but that holds its lock, as from another
	// container.
	far, err := m.ops.claim(owner{pid: 1 << 30, start: 1}, filepath.Join(m.placeOf("pids").parent), "7")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(far.dir)

	before := groupsIn(t, m)
	removed, err := m.Sweep(context.Background())
	if err != nil || len(removed) != 0 {
		t.Fatalf("all alive: removed %v, %v", removed, err)
	}
	dead.Process.Kill()
	dead.Wait()
	removed, err = m.Sweep(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("/%s%d-", prefix, dead.Process.Pid)
	var want []string
	for _, g := range before {
		if strings.Contains(g, mark) {
			want = append(want, g)
		}
	}
	slices.Sort(want)
	slices.Sort(removed)
	if len(want) < 2 || !slices.Equal(want, removed) {
		t.Errorf("removed %v, want %v", removed, want)
	}
	if after := groupsIn(t, m); len(after) != len(before)-len(want) {
		t.Errorf("left %v of %v", after, before)
	}
	within(t, "end of what the dead owner left", func() bool { return gone(deadInside) })
	if gone(livingInside) || gone(living.Process.Pid) {
		t.Error("a living sibling was hurt")
	}

	far.release()
	if removed, err := m.Sweep(context.Background()); err != nil || !slices.Equal(removed, []string{far.dir}) {
		t.Errorf("lock free: removed %v, %v", removed, err)
	}
	living.Process.Kill()
	living.Wait()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if removed, err := m.Sweep(ended); err == nil || len(removed) != 0 {
		t.Errorf("cancelled: removed %v, %v", removed, err)
	}
	if removed, err := m.Sweep(context.Background()); err != nil || len(removed) != len(want) {
		t.Errorf("last owner: removed %v, %v", removed, err)
	}
	within(t, "end of the last process", func() bool { return gone(livingInside) })
}

// useAs goes through a manager's life as another user.
func useAs(t *testing.T, uid uint32, parent string) (r userReport) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe") // works where the path does not for that user
	cmd.Env = append(os.Environ(), "BELLJAR_HELPER=user", quickExit, "BELLJAR_PARENT="+parent)
	cmd.Stderr = os.Stderr
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// A user to whom root has given a group has all of it.
func TestRootGroupGivenToUser(t *testing.T) {
	parent := newParent(t)
	hs, err := findHierarchies(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hs {
		for _, name := range []string{"", "cgroup.procs", "tasks"} {
			if err := os.Chown(h.path(parent+"/"+name), 12345, 12345); err != nil && !(h.v2 && name == "tasks") {
				t.Fatal(err)
			}
		}
	}
	r := useAs(t, 12345, parent)
	if r.UID != 12345 || r.Version != 1 || len(r.Missing) != 0 || len(r.Errors) != 0 || !r.Idle {
		t.Errorf("%+v", r)
	}
}

// TestOrdinaryUser needs no root; with it, it becomes somebody else.
func TestOrdinaryUser(t *testing.T) {
	for _, parent := range []string{"", "/", "/belljar-there-is-none"} {
		t.Run("parent "+parent, func(t *testing.T) {
			var r userReport
			if os.Geteuid() != 0 {
				r = useAll(Config{Parent: parent})
			} else {
				r = useAs(t, 12345, parent)
			}
			if len(r.Errors) != 0 {
				t.Errorf("uid %d: %v", r.UID, r.Errors)
			}
			if r.Version != 0 {
				return // a host that delegates groups to its users
			}
			var names []string
			for _, m := range r.Missing {
				names = append(names, m.Protection)
				if len(m.Reason) < 20 || strings.Contains(m.Reason, "\n") {
					t.Errorf("%s: reason %q", m.Protection, m.Reason)
				}
				t.Logf("%s: %s", m.Protection, m.Reason)
			}
			if !slices.Contains(names, ProtectMemory) {
				t.Errorf("missing: %v", r.Missing)
			}
			if want := (Stats{MemoryPeak: -1, CPU: -1, PidsPeak: -1}); r.FD == -1 && r.Stats != want {
				t.Errorf("stats %+v, want %+v", r.Stats, want)
			}
			if !r.Idle {
				t.Error("not idle")
			}
			for _, c := range r.Checks {
				t.Logf("%s %s: %s (%s)", c.Name, c.State, c.Meaning, c.Remedy)
			}
		})
	}
}
