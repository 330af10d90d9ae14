package testkit

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// LeakCheck remembers what there is now and fails the test if, after it and the
// clean-ups registered later than this call, something is left: goroutines,
// open descriptors, child processes, mounts, control groups and temporary
// folders named belljar-*. What is on its way out is given six seconds: groups of
// an engine that a neighbour's test has killed go with the next start there.
//
// It gives the test a TMPDIR of its own, so it cannot be used by parallel tests;
// there a leak could not be told from a neighbour's work anyway.
func LeakCheck(t testing.TB) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	before := snapshot(tmp)
	t.Cleanup(func() {
		var left []string
		for deadline := time.Now().Add(6 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			left = snapshot(tmp).since(before)
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				break
			}
		}
		t.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
	})
}

// state maps what exists to how it is shown; the keys make two moments comparable.
type state map[string]string

func (s state) since(before state) []string {
	var left []string
	for k, v := range s {
		if _, ok := before[k]; !ok {
			left = append(left, v)
		}
	}
	sort.Strings(left)
	return left
}

func snapshot(tmp string) state {
	s := state{}
	s.goroutines()
	s.descriptors()
	s.children()
	s.mounts()
	s.groups()
	s.folders(tmp)
	return s
}

// goroutines that the testing package or the runtime keep for themselves.
var ownGoroutines = []string{
	"testing.(*T).Run(", "testing.tRunner.func", "testing.runTests(", "testing.(*M).",
	"os/signal.loop(", "os/signal.signal_recv(", "runtime.ensureSigM", "runtime/pprof.",
}

func (s state) goroutines() {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
next:
	for i, g := range bytes.Split(buf, []byte("\n\n")) {
		text := string(g)
		if i == 0 {
			continue // the one that asks
		}
		for _, own := range ownGoroutines {
			if strings.Contains(text, own) {
				continue next
			}
		}
		head, _, _ := strings.Cut(text, " [")
		s[head] = text
	}
}

func (s state) descriptors() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		link, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the listing's own descriptor
		}
		// The runtime opens its poller once and keeps it.
		if link == "anon_inode:[eventpoll]" || link == "anon_inode:[eventfd]" {
			continue
		}
		s["fd "+e.Name()+" "+link] = "descriptor " + e.Name() + " -> " + link
	}
}

func (s state) children() {
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread ended
		}
		for pid := range strings.FieldsSeq(string(text)) {
			cmd, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			s["child "+pid] = fmt.Sprintf("child process %s %q", pid, bytes.ReplaceAll(cmd, []byte{0}, []byte{' '}))
		}
	}
}

func (s state) mounts() {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		s["mount "+line] = "mount " + strings.TrimSpace(line)
	}
}

// groups notes the control groups named belljar-*. Test binaries of other
// packages run beside this one: a group that names a living process which is not
// this one is theirs.
func (s state) groups() {
	v1, v2, err := cgroupMounts()
	if err != nil {
		return
	}
	roots := map[string]bool{}
	for _, root := range v1 {
		roots[root] = true
	}
	if v2 != "" {
		roots[v2] = true
	}
	for root := range roots {
		depth := strings.Count(root, "/")
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // a group may vanish while we look
			}
			if strings.HasPrefix(d.Name(), "belljar-") {
				if !ofNeighbour(d.Name()) && ours(d) {
					s["cgroup "+path] = "control group " + path
				}
				return fs.SkipDir
			}
			if strings.Count(path, "/")-depth > 6 {
				return fs.SkipDir
			}
			return nil
		})
	}
}

// ours says that a group was made by this user: another user's cannot be left
// behind by us.
func ours(d fs.DirEntry) bool {
	info, err := d.Info()
	if err != nil {
		return false // it vanished
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}

func ofNeighbour(name string) bool {
	for part := range strings.SplitSeq(name, "-") {
		pid, err := strconv.Atoi(part)
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue
		}
		if _, err := os.Stat("/proc/" + part); err == nil {
			return true
		}
	}
	return false
}

func (s state) folders(tmp string) {
	names, err := filepath.Glob(filepath.Join(tmp, "belljar-*"))
	if err != nil {
		return
	}
	for _, n := range names {
		s["tmp "+n] = "temporary " + n
	}
}
