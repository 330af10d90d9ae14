//go:build linux

package cgroup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeTree is a version 2 tree of plain files that keeps the kernel's rules as
// far as we lean on them: files by enabled controllers, and none but empty groups
// removed.
type fakeTree struct {
	t      *testing.T
	root   string
	config Config
	owned  bool // all groups belong to our user, who is not root

	mu      sync.Mutex
	log     []string            // writes, as path=value from the root
	enabled map[string][]string // by subtree_control file
	procs   []string            // process lists that hold us
}

// newFakeTree makes the top group and our own, with ourselves in it.
func newFakeTree(t *testing.T, own, offered, enabledAtTop string) *fakeTree {
	t.Helper()
	base := t.TempDir()
	f := &fakeTree{t: t, root: filepath.Join(base, "cgroup")}
	self := filepath.Join(base, "self")
	f.config = Config{Root: f.root, ProcSelf: self}
	f.must(os.Mkdir(self, 0o755))
	f.must(os.WriteFile(filepath.Join(self, "cgroup"), []byte("0::"+own+"\n"), 0o644))
	f.must(os.WriteFile(filepath.Join(self, "mountinfo"), []byte("26 23 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"), 0o644))
	f.enabled = map[string][]string{"/cgroup.subtree_control": strings.Fields(enabledAtTop)}
	f.must(os.Mkdir(f.root, 0o755))
	f.set("/cgroup.controllers", offered)
	f.set("/cgroup.subtree_control", enabledAtTop)
	f.set("/cgroup.procs", "")
	dir := f.root
	for part := range strings.SplitSeq(strings.Trim(own, "/"), "/") {
		if part != "" {
			dir = filepath.Join(dir, part)
			f.must(f.mkdir(dir))
		}
	}
	f.set(own+"/cgroup.procs", strconv.Itoa(os.Getpid()))
	f.procs = []string{filepath.Join(f.root, own, "cgroup.procs")}
	return f
}

func (f *fakeTree) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeTree) set(file, value string) {
	f.t.Helper()
	f.must(os.WriteFile(filepath.Join(f.root, file), []byte(value+"\n"), 0o644))
}

func (f *fakeTree) get(file string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.root, file))
	f.must(err)
	return strings.TrimSpace(string(data))
}

func (f *fakeTree) ops() *ops {
	return &ops{mkdir: f.mkdir, rmdir: f.rmdir, wrote: f.wrote, owned: func(uint32) bool { return f.owned }}
}

func (f *fakeTree) mkdir(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	above, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	files := map[string]string{
		"cgroup.controllers": strings.TrimSpace(string(above)), "cgroup.subtree_control": "", "cgroup.procs": "",
		"cgroup.events": "populated 0\nfrozen 0", "cgroup.kill": "", "cgroup.type": "domain",
		"cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0",
	}
	for _, c := range strings.Fields(string(above)) {
		switch c {
		case "memory":
			files["memory.max"], files["memory.swap.max"], files["memory.oom.group"] = "max", "max", "0"
			files["memory.current"], files["memory.peak"] = "0", "0"
			files["memory.events"] = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0"
			files["memory.stat"] = "anon 0\nfile 0\ninactive_file 0\nactive_file 0\nslab_reclaimable 0"
		case "pids":
			files["pids.max"], files["pids.events"], files["pids.current"], files["pids.peak"] = "max", "max 0", "0", "0"
		case "cpu":
			files["cpu.weight"] = "100"
		}
	}
	for name, value := range files {
		if err := os.WriteFile(filepath.Join(path, name), []byte(value+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeTree) rmdir(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	procs, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(procs)) != "" || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() }) {
		return &fs.PathError{Op: "rmdir", Path: path, Err: unix.EBUSY}
	}
	return os.RemoveAll(path)
}

// wrote does what the kernel does on a write.
func (f *fakeTree) wrote(path, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rel := strings.TrimPrefix(path, f.root)
	f.log = append(f.log, rel+"="+value)
	switch filepath.Base(path) {
	case "cgroup.subtree_control":
		now := f.enabled[rel]
		if rest, ok := strings.CutPrefix(value, "-"); ok {
			now = slices.DeleteFunc(now, func(c string) bool { return c == rest })
		} else {
			now = append(now, strings.TrimPrefix(value, "+"))
		}
		f.enabled[rel] = now
		value = strings.Join(now, " ")
	case "cgroup.procs": // the process leaves where it was
		for _, other := range f.procs {
			os.WriteFile(other, nil, 0o644)
		}
		f.procs = []string{path}
	}
	if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
		f.t.Error(err)
	}
}

// snapshot lists all groups and what is enabled in them.
func (f *fakeTree) snapshot() (out []string) {
	f.t.Helper()
	f.must(filepath.WalkDir(f.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			rel := "/" + strings.TrimPrefix(strings.TrimPrefix(path, f.root), "/")
			out = append(out, fmt.Sprintf("%s enabled=%q procs=%q", rel, f.get(rel+"/cgroup.subtree_control"), f.get(rel+"/cgroup.procs")))
		}
		return err
	}))
	return out
}
