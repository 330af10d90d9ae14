package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/belljar/belljar"
	"golang.org/x/sys/unix"
)

// watchEvery is how often memory is measured where no control group limits it. A
// run can overshoot by what it touches in that time; the engine itself is not at
// risk, because the host's own killer prefers runs.
const watchEvery = 20 * time.Millisecond

// watcher bounds the memory of a run from outside, where the user may make no
// control groups. It is the protection memory_watch.
type watcher struct {
	exceeded chan struct{}
	stop     chan struct{}
	done     chan struct{}
	most     atomic.Int64
}

// watch starts a watcher over the processes below pid, or returns nil where the
// kernel limits memory itself.
func (h *Host) watch(pid int, s *slot, l belljar.Limits) *watcher {
	if s.group != nil && h.groups.Has("memory") {
		return nil
	}
	w := &watcher{exceeded: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	go w.loop(pid, l.MemoryBytes)
	return w
}

func (w *watcher) loop(pid int, limit int64) {
	defer close(w.done)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		used := measure(pid, limit)
		if used > w.most.Load() {
			w.most.Store(used)
		}
		if used > limit {
			close(w.exceeded)
			return
		}
	}
}

func (w *watcher) close() {
	close(w.stop)
	<-w.done
}

func (w *watcher) peak() int64 { return w.most.Load() }

// measure adds up what the tree below a process uses. Resident pages are cheap to
// read but count a page once for each process that shares it after a fork, so the
// exact and dearer figure is taken only when the cheap one is above the limit.
func measure(pid int, limit int64) int64 {
	tree := descendants(pid)
	files := int64(0)
	if len(tree) > 1 {
		files = writtenBytes(tree[1])
	}
	sum := files
	for _, p := range tree {
		sum += resident(p)
	}
	if sum <= limit {
		return sum
	}
	sum = files
	for _, p := range tree {
		sum += proportional(p)
	}
	return sum
}

// descendants lists a process and all below it. In a PID namespace every orphan
// becomes a child of PID 1, so nothing can leave the tree.
func descendants(pid int) []int {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		base := "/proc/" + strconv.Itoa(list[i]) + "/task/"
		tasks, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		for _, t := range tasks {
			raw, err := os.ReadFile(base + t.Name() + "/children")
			if err != nil {
				continue
			}
			for _, f := range bytes.Fields(raw) {
				if n, err := strconv.Atoi(string(f)); err == nil {
					list = append(list, n)
				}
			}
		}
	}
	return list
}

var pageSize = int64(os.Getpagesize())

// resident is the memory of one process that no file backs.
func resident(pid int) int64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	f := bytes.Fields(raw)
	if len(f) < 3 {
		return 0
	}
	all, err1 := strconv.ParseInt(string(f[1]), 10, 64)
	shared, err2 := strconv.ParseInt(string(f[2]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (all - shared) * pageSize
}

// proportional is the same, with shared pages divided among those that share
// them. It falls back to the resident figure where it may not be read.
func proportional(pid int) int64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return resident(pid)
	}
	for line := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss_Anon:")); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
				return kb * 1024
			}
		}
	}
	return resident(pid)
}

// writtenBytes is what the run keeps in its writable file system, which is memory
// too. It is asked through the program's own root, which only the owner of its
// user namespace may open.
func writtenBytes(pid int) int64 {
	var st unix.Statfs_t
	if unix.Statfs("/proc/"+strconv.Itoa(pid)+"/root"+Workspace, &st) != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}
