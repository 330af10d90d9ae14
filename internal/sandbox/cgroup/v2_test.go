//go:build linux

package cgroup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func (f *fakeTree) open() *Manager {
	f.t.Helper()
	m, err := open(f.config, f.ops())
	f.must(err)
	return m
}

func TestStandingDelegated(t *testing.T) {
	for _, c := range []struct {
		name              string
		s                 standing
		delegated, usable bool
	}{
		{"somebody's group", standing{}, false, false},
		{"root in a service's group", standing{writable: true}, false, false},
		{"top of the host, root", standing{writable: true, top: true}, false, true},
		{"top of the host, user", standing{top: true}, false, false},
		{"top of a container", standing{writable: true, top: true, namespaced: true}, true, true},
		{"top of a container, read-only", standing{top: true, namespaced: true}, false, false},
		{"user scope", standing{writable: true, owned: true}, true, true},
		{"service with Delegate=yes", standing{writable: true, marked: true}, true, true},
		{"marked but not writable", standing{marked: true, owned: true}, false, false},
		{"named by the operator", standing{writable: true, configured: true}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d, u := c.s.delegated(), c.s.usable(); d != c.delegated || u != c.usable {
				t.Errorf("delegated %t, usable %t; want %t, %t", d, u, c.delegated, c.usable)
			}
		})
	}
}

// A container: the top of our namespace is our own group, nothing is enabled in
// it, and we are alone.
func TestV2MovesAloneIntoLeafAndBack(t *testing.T) {
	f := newFakeTree(t, "/", "cpuset cpu io memory hugetlb pids", "")
	f.set("/cgroup.type", "domain")
	before := f.snapshot()
	m := f.open()
	if m.Version() != 2 || !m.Has("memory") || !m.Has("pids") || !m.Has("cpu") || len(m.Missing()) != 0 {
		t.Fatalf("version %d, missing %v", m.Version(), m.Missing())
	}
	leaf, group := "/"+m.self.groupName(leafName), "/"+filepath.Base(m.v2.group.dir)
	want := []string{
		fmt.Sprintf("%s/cgroup.procs=%d", leaf, os.Getpid()), // before anything is enabled
		"/cgroup.subtree_control=+cpu", "/cgroup.subtree_control=+memory", "/cgroup.subtree_control=+pids",
		group + "/cgroup.subtree_control=+cpu", group + "/cgroup.subtree_control=+memory", group + "/cgroup.subtree_control=+pids",
		group + "/probe/cpu.weight=50", group + "/probe/memory.max=67108864", group + "/probe/pids.max=64",
	}
	if diff := cmp.Diff(want, f.log); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(m.v2.group.dir, "probe")); err == nil {
		t.Error("the probe is still there")
	}

	// A second manager finds us in the leaf, and all enabled.
	f.must(os.WriteFile(filepath.Join(f.config.ProcSelf, "cgroup"), []byte("0::"+leaf+"\n"), 0o644))
	second := f.open()
	if second.Version() != 2 || second.v2.leaf.dir != "" {
		t.Errorf("second: version %d, leaf %q, missing %v", second.Version(), second.v2.leaf.dir, second.Missing())
	}
	f.must(second.Close())

	f.must(m.Close())
	f.must(m.Close())
	if diff := cmp.Diff(before, f.snapshot()); diff != "" {
		t.Errorf("not as before:\n%s", diff)
	}
}

func TestV2Places(t *testing.T) {
	const all = "cpu memory pids"
	for _, c := range []struct {
		name             string
		own, offered, on string
		change           func(f *fakeTree)
		version          int
		parent           string   // where our group is
		reasons          []string // words that each missing protection's reason has
	}{
		{name: "root in a session falls back to the top", own: "/user.slice/session-1.scope", offered: all, on: all, version: 2, parent: "/"},
		{
			name: "user scope", own: "/user.slice/user@12345.service/run.scope", offered: all, on: all,
			change: func(f *fakeTree) {
				f.owned = true
				f.set("/user.slice/user@12345.service/run.scope/cgroup.controllers", all)
			},
			version: 2, parent: "/user.slice/user@12345.service/run.scope",
		},
		{
			name: "user scope with the shell in it", own: "/run.scope", offered: all, on: all,
			change: func(f *fakeTree) {
				f.owned = true
				f.set("/run.scope/cgroup.procs", fmt.Sprintf("%d\n1\n2", os.Getpid()))
			},
			parent: "/run.scope", reasons: []string{"holds 2 other processes", "holds 2 other processes"},
		},
		{
			name: "top without controllers for its children", own: "/user.slice/session-1.scope", offered: all,
			parent: "/", reasons: []string{"not enabled for the children", "not enabled for the children"},
		},
		{
			name: "kernel without the controllers", own: "/a", offered: "cpuset io",
			parent: "/", reasons: []string{"has the memory controller", "has the pids controller"},
		},
		{
			name: "memory alone", own: "/a", offered: "memory", on: "memory", version: 2,
			parent: "/", reasons: []string{"has the pids controller"},
		},
		{
			name: "configured parent", own: "/a", offered: all, on: all, version: 2, parent: "/jail",
			change: func(f *fakeTree) {
				f.must(f.mkdir(f.root + "/jail"))
				f.config.Parent = "/jail"
			},
		},
		{
			name: "configured parent with other processes", own: "/a", offered: all, on: all, parent: "/jail",
			change: func(f *fakeTree) {
				f.must(f.mkdir(f.root + "/jail"))
				f.set("/jail/cgroup.procs", fmt.Sprintf("1\n%d", os.Getpid()))
				f.config.Parent = "/jail"
			},
			reasons: []string{"holds 1 other processes", "holds 1 other processes"},
		},
		{
			name: "configured parent that is not there", own: "/a", offered: all, on: all,
			change:  func(f *fakeTree) { f.config.Parent = "/jail" },
			reasons: []string{"there is no such group", "there is no such group"},
		},
		{
			name: "controller not handed down to the parent", own: "/a", offered: all, on: "pids", parent: "/jail",
			change: func(f *fakeTree) {
				f.must(f.mkdir(f.root + "/jail"))
				f.config.Parent = "/jail"
			},
			reasons: []string{"the memory controller is not delegated"},
		},
		{
			name: "nothing mounted", own: "/a", offered: all, on: all,
			change: func(f *fakeTree) {
				f.must(os.WriteFile(filepath.Join(f.config.ProcSelf, "mountinfo"), nil, 0o644))
			},
			reasons: []string{"no control group file system", "no control group file system"},
		},
		{
			name: "no proc", own: "/a", offered: all, on: all,
			change:  func(f *fakeTree) { f.config.ProcSelf = "/nonexistent" },
			reasons: []string{"find control groups", "find control groups"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeTree(t, c.own, c.offered, c.on)
			if c.change != nil {
				c.change(f)
			}
			before := f.snapshot()
			m := f.open()
			if m.Version() != c.version {
				t.Errorf("version %d, want %d", m.Version(), c.version)
			}
			parent := ""
			if m.v2 != nil {
				parent = "/" + strings.TrimPrefix(strings.TrimPrefix(m.v2.parent, f.root), "/")
			}
			if parent != c.parent {
				t.Errorf("groups in %q, want %q", parent, c.parent)
			}
			missing := m.Missing()
			if len(missing) != len(c.reasons) {
				t.Fatalf("missing %v, want %d", missing, len(c.reasons))
			}
			for i, want := range c.reasons {
				if !strings.Contains(missing[i].Reason, want) {
					t.Errorf("%s: %q, want it to say %q", missing[i].Protection, missing[i].Reason, want)
				}
			}
			if n := len(m.Checks()); n != 3 {
				t.Errorf("%d checks", n)
			}
			f.must(m.Close())
			if diff := cmp.Diff(before, f.snapshot()); diff != "" {
				t.Errorf("not as before:\n%s", diff)
			}
		})
	}
}

func TestV2Slot(t *testing.T) {
	f := newFakeTree(t, "/a", "cpu memory pids", "cpu memory pids")
	m := f.open()
	defer m.Close()
	s := newSlot(t, m)
	dir := strings.TrimPrefix(s.v2, f.root)
	if s.FD() < 0 {
		t.Error("no descriptor")
	}
	f.must(s.Enter(os.Getppid())) // nothing to do
	if swap, group := f.get(dir+"/memory.swap.max"), f.get(dir+"/memory.oom.group"); swap != "0" || group != "1" {
		t.Errorf("swap.max %s, oom.group %s", swap, group)
	}
	f.log = nil
	f.must(s.Arm(Limits{MemoryBytes: 100 << 20, Processes: 20}))
	want := []string{dir + "/memory.max=104857600", dir + "/memory.peak=0", dir + "/pids.max=21"}
	if diff := cmp.Diff(want, f.log); diff != "" {
		t.Error(diff)
	}

	f.set(dir+"/memory.peak", "73400320")
	f.set(dir+"/cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500")
	f.set(dir+"/pids.peak", "5")
	f.set(dir+"/pids.events", "max 3")
	f.set(dir+"/memory.events", "low 0\nhigh 0\nmax 7\noom 0\noom_kill 0\noom_group_kill 0")
	got := stats(t, s)
	if diff := cmp.Diff(Stats{MemoryPeak: 73400320, CPU: 1500 * time.Microsecond, PidsRefused: 3, PidsPeak: 4}, got); diff != "" {
		t.Error(diff)
	}
	f.set(dir+"/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 4\noom_group_kill 1")
	select {
	case <-s.OOM():
	case <-time.After(20 * time.Second):
		t.Fatal("no signal of the kill")
	}
	if n := stats(t, s).OOMKills; n != 4 {
		t.Errorf("%d kills", n)
	}

	f.log = nil
	f.must(s.Kill())
	if diff := cmp.Diff([]string{dir + "/pids.max=0", dir + "/cgroup.kill=1"}, f.log); diff != "" {
		t.Error(diff)
	}
	f.set(dir+"/pids.events", "max 8") // by the kill itself
	if n := stats(t, s).PidsRefused; n != 3 {
		t.Errorf("%d refusals, want 3", n)
	}
	if !idle(t, s) {
		t.Error("not clean")
	}

	// The next run starts from nothing, whatever the files have counted so far.
	f.must(s.Arm(Limits{MemoryBytes: 50 << 20, Processes: 20}))
	f.set(dir+"/memory.peak", "1048576")
	if diff := cmp.Diff(Stats{MemoryPeak: 1 << 20, PidsPeak: -1}, stats(t, s)); diff != "" {
		t.Error(diff)
	}
	f.must(s.Kill())

	for _, c := range []struct {
		name        string
		file, value string
		clean       bool
	}{
		{"a process is left", "cgroup.events", "populated 1\nfrozen 0", false},
		{"a zombie is left", "pids.current", "1", false},
		{"memory is left", "memory.current", "536870912", false},
		{"file cache is left", "memory.stat", "inactive_file 300000000\nactive_file 236870912\nslab_reclaimable 0", true},
	} {
		old := f.get(dir + "/" + c.file)
		if c.name == "file cache is left" {
			f.set(dir+"/memory.current", "536870912")
		}
		f.set(dir+"/"+c.file, c.value)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		if clean, err := s.Idle(ctx); clean != c.clean || err != nil {
			t.Errorf("%s: clean %t, %v", c.name, clean, err)
		}
		cancel()
		f.set(dir+"/"+c.file, old)
	}
	f.must(s.Close())
}

// Without a configured parent the sweep looks above us and one level into the
// groups beside our own.
func TestV2SweepLooksAround(t *testing.T) {
	f := newFakeTree(t, "/slice/session-2", "cpu memory pids", "cpu memory pids")
	dead := owner{pid: 1 << 30, start: 7}
	for _, g := range []string{"/slice/session-1", "/slice/session-1/deep", "/other"} {
		f.must(f.mkdir(f.root + g))
	}
	want := []string{
		"/slice/session-2/" + dead.groupName("3"),
		"/slice/" + dead.groupName("4"), "/slice/" + dead.groupName(leafName),
		"/" + dead.groupName("5"),
		"/slice/session-1/" + dead.groupName("6"),
	}
	kept := []string{
		"/slice/session-1/deep/" + dead.groupName("7"), // further away than we look
		"/other/" + dead.groupName("8"),
		"/slice/" + owner{pid: 1 << 30, start: 8}.groupName(leafName), // somebody lives in it
		"/slice/session-1/belljar-notes",
	}
	for _, g := range append(want, kept...) {
		f.must(f.mkdir(f.root + g))
	}
	f.must(f.mkdir(f.root + want[0] + "/slot-1"))
	f.set(kept[2]+"/cgroup.procs", "1")

	m := f.open()
	f.log = nil
	removed, err := m.Sweep(t.Context())
	f.must(err)
	for i := range removed {
		removed[i] = strings.TrimPrefix(removed[i], f.root)
	}
	slices.Sort(removed)
	slices.Sort(want)
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Error(diff)
	}
	for _, g := range kept {
		if _, err := os.Stat(f.root + g); err != nil {
			t.Error(err)
		}
	}
	for _, w := range f.log {
		if strings.Contains(w, leafName) {
			t.Errorf("wrote %s: what lives in a leaf is not ours to end", w)
		}
	}
	f.must(m.Close())

	// Nor is a dead owner's group that we run in.
	inside := "/" + dead.groupName("9")
	f = newFakeTree(t, inside+"/slot-1", "cpu memory pids", "cpu memory pids")
	m = f.open()
	f.log = nil
	if removed, err := m.Sweep(t.Context()); err != nil || len(removed) != 0 || len(f.log) != 0 {
		t.Errorf("removed %v, %v, wrote %v", removed, err, f.log)
	}
	f.must(m.Close())
}

// Before Linux 6.12 memory.peak is for the group's whole life.
func TestV2PeakThatCannotBeReset(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"memory.max", "memory.current", "memory.events"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := kernelOps()
	without, err := openMemoryV2(o, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer without.close()
	if n, err := without.peak(); n != -1 || err != nil || without.resetPeak() != nil {
		t.Errorf("no file: peak %d, %v", n, err)
	}

	peak := filepath.Join(dir, "memory.peak")
	set := func(s string) {
		if err := os.WriteFile(peak, []byte(s+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set("1000")
	m, err := openMemoryV2(o, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	m.(*memoryV2).resettable = false
	set("1000")
	for _, c := range []struct {
		now  string
		want int64
	}{{"1000", -1}, {"5000", 5000}} {
		if err := m.resetPeak(); err != nil {
			t.Fatal(err)
		}
		set(c.now)
		if n, err := m.peak(); n != c.want || err != nil {
			t.Errorf("peak went to %s: %d, %v, want %d", c.now, n, err, c.want)
		}
	}
}

func TestV1LimitOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		swap bool
		want []string
	}{
		{"swap counted", true, []string{"mem=100", "swap=100", "swap=200", "mem=200", "mem=50", "swap=50"}},
		{"swap not counted", false, []string{"mem=100", "mem=200", "mem=50"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			names := []string{"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"}
			if c.swap {
				names = append(names, "memory.memsw.limit_in_bytes")
			}
			for _, n := range names {
				if err := os.WriteFile(filepath.Join(dir, n), []byte("0\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var log []string
			o := kernelOps()
			short := map[string]string{"memory.limit_in_bytes": "mem", "memory.memsw.limit_in_bytes": "swap"}
			o.wrote = func(path, value string) { log = append(log, short[filepath.Base(path)]+"="+value) }
			m, err := openMemoryV1(o, dir)
			if err != nil {
				t.Fatal(err)
			}
			defer m.close()
			for _, n := range []int64{100, 200, 200, 50} {
				if err := m.setLimit(n); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, log); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenRefusesParent(t *testing.T) {
	for _, parent := range []string{"relative", "/a/../b", "/a/", "//a", "."} {
		if m, err := Open(Config{Parent: parent}); err == nil {
			m.Close()
			t.Errorf("parent %q was taken", parent)
		}
	}
}
