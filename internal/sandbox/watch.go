package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"
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
	tasks    atomic.Int64 // the most processes and threads seen at once
	ticks    atomic.Int64 // processor time seen, in clock ticks
}

// watch starts a watcher over the processes below pid, or returns nil where the
// kernel limits memory itself.
func watch(pid int, s *slot, l belljar.Limits) *watcher {
	if s.memoryLimited {
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
		used, tasks, ticks := measure(pid, limit)
		w.ticks.Store(max(w.ticks.Load(), ticks))
		w.tasks.Store(max(w.tasks.Load(), tasks))
		if used > w.most.Load() {
			w.most.Store(used)
		}
		if used > limit || hostShort() {
			close(w.exceeded)
			return
		}
	}
}

// hostShort says that the host is about to run out of memory. Some memory of a run
// shows in none of its processes (pages in flight between sockets, shared pages that
// were let go); this is the line behind which it may not push the host.
func hostShort() bool {
	total, free := sumKB("/proc/meminfo", "MemTotal:"), sumKB("/proc/meminfo", "MemAvailable:")
	return total > 0 && free < total/20
}

func (w *watcher) close() {
	close(w.stop)
	<-w.done
}

// account adds what was seen to what is known of the run.
func (w *watcher) account(exit *Exit, processes int64) {
	exit.Usage.PeakMemoryBytes = max(exit.Usage.PeakMemoryBytes, w.most.Load())
	exit.Usage.CPUMS = max(exit.Usage.CPUMS, float64(w.ticks.Load())*1000/userHZ)
	if w.tasks.Load() >= processes {
		likely := processDenial
		likely.Likely = true
		exit.Denials = append(exit.Denials, likely)
	}
}

// measure adds up what the tree below a process uses. Resident pages are cheap to
// read but count a page once for each process that shares it after a fork, so the
// exact and dearer figure is taken only when the cheap one is above the limit.
func measure(pid int, limit int64) (used, tasks, ticks int64) {
	tree, tasks := family(pid)
	tasks -= initOverhead
	files := memoryFiles(tree)
	if len(tree) > 1 {
		files += writtenBytes(tree[1])
	}
	sum := files
	for _, p := range tree {
		sum += resident(p)
		ticks += processorTicks(p)
	}
	if sum <= limit {
		return sum, tasks, ticks
	}
	sum = files
	for _, p := range tree {
		if exact := fieldsKB(p, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:"); exact > 0 {
			sum += exact + fieldsKB(p, "status", "VmPTE:")
		} else {
			sum += resident(p)
		}
	}
	return sum, tasks, ticks
}

// family lists a process and all below it, and counts their threads. In a PID
// namespace every orphan becomes a child of PID 1, so nothing can leave the tree.
func family(pid int) (list []int, threads int64) {
	list = []int{pid}
	for i := 0; i < len(list); i++ {
		base := "/proc/" + strconv.Itoa(list[i]) + "/task/"
		tasks, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		threads += int64(len(tasks))
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
	return list, threads
}

// userHZ is the unit of processor time in /proc, the same on every Linux.
const userHZ = 100

// processorTicks is the processor time of a process and of those of its children
// that it waited for.
func processorTicks(pid int) (sum int64) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name in the second field may hold anything; utime to cstime are the 12th
	// to 15th after it.
	f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(f) < 15 {
		return 0
	}
	for _, x := range f[11:15] {
		n, _ := strconv.ParseInt(string(x), 10, 64)
		sum += n
	}
	return sum
}

// resident is the memory of one process that no file backs, and its page tables.
func resident(pid int) int64 { return fieldsKB(pid, "status", "RssAnon:", "RssShmem:", "VmPTE:") }

// fieldsKB adds up fields of a file of /proc/<pid> that are given in kB, in bytes;
// 0 when the process is gone or may not be read.
func fieldsKB(pid int, file string, fields ...string) int64 {
	return sumKB("/proc/"+strconv.Itoa(pid)+"/"+file, fields...)
}

func sumKB(name string, fields ...string) (sum int64) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(raw) {
		for _, field := range fields {
			rest, ok := bytes.CutPrefix(line, []byte(field))
			if f := bytes.Fields(rest); ok && len(f) > 0 {
				kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
				sum += kb * 1024
			}
		}
	}
	return sum
}

// memoryFiles is what open files in memory (memfd_create) hold: they belong to no
// file system of the run, and are in no resident set until they are mapped.
func memoryFiles(tree []int) int64 {
	var sum int64
	seen := map[uint64]bool{}
	for _, p := range tree {
		dir := "/proc/" + strconv.Itoa(p) + "/fd/"
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range list {
			if to, err := os.Readlink(dir + e.Name()); err != nil || !strings.HasPrefix(to, "/memfd:") {
				continue
			}
			var st unix.Stat_t
			if unix.Stat(dir+e.Name(), &st) == nil && !seen[st.Ino] {
				seen[st.Ino] = true
				sum += st.Blocks * 512
			}
		}
	}
	return sum
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
