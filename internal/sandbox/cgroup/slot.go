//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of one run.
type Limits struct {
	// MemoryBytes is what the program's processes may use together, swap and
	// tmpfs included.
	MemoryBytes int64
	// Processes counts processes and threads of the program. The slot adds its own:
	// the init process of the run and, in version 1, the spawner.
	Processes int64
}

// Stats count since [Slot.Arm].
type Stats struct {
	OOMKills    int64         // processes killed for want of memory
	MemoryPeak  int64         // bytes; -1 unknown
	CPU         time.Duration // of all processes; -1 unknown
	PidsRefused int64         // forks and threads refused at the limit
	PidsPeak    int64         // the program's processes and threads at one time; -1 unknown
}

// Slot is a set of groups for one run at a time. Arm, Stats, Kill and Idle may be
// called at once; that only one run is in it is the caller's rule.
//
// The processes of a run should raise their own oom_score_adj (to 1000), so that
// in version 1 the kernel never picks the spawner instead.
type Slot struct {
	m    *Manager
	name string

	v1   []string // our group in each version 1 hierarchy; all hold the same processes
	v2   string   // "" where there is none
	v2fd int

	mem       memory
	pids      *pids
	cpu       *cpu
	populated *control // version 2: cgroup.events
	killer    *control // version 2: cgroup.kill, nil before Linux 5.14

	oom     chan struct{}
	watcher *watcher
	stop    chan struct{} // closed first when the slot closes
	stopped sync.Once

	// life is held for reading while the files are in use; Close takes it whole.
	life   sync.RWMutex
	closed bool

	mu      sync.Mutex
	spawner owner // pid 0: none entered
	extra   int64 // processes in the groups that are not the program's
	base    int64 // bytes charged while only the spawner is there
	armed   armed
}

// armed is what Stats counts from.
type armed struct {
	limit                int64 // bytes for the program; 0: not armed
	usage, oomKills, cpu int64
	refused, pidsPeak    int64
	stopped              bool  // Kill lowered pids.max; later refusals are our own doing
	refusedEnd           int64 // the counter at that moment
}

// initProcesses is the init process of a run.
const initProcesses = 1

// build makes the groups and opens their files. After an error destroy cleans up.
func (s *Slot) build() error {
	s.v2fd = -1
	s.extra = initProcesses
	o := s.m.ops
	dirs := map[*place]string{}
	for _, p := range s.m.places() {
		dir := filepath.Join(p.group.dir, s.name)
		if err := o.mkdir(dir); err != nil {
			return err
		}
		dirs[p] = dir
		if !p.h.v2 {
			s.v1 = append(s.v1, dir)
			continue
		}
		s.v2 = dir
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: dir, Err: err}
		}
		s.v2fd = fd
		if s.populated, err = o.open(filepath.Join(dir, "cgroup.events"), unix.O_RDONLY); err != nil {
			return err
		}
		if s.killer, err = o.openIf(filepath.Join(dir, "cgroup.kill"), unix.O_WRONLY); err != nil {
			return err
		}
	}
	var err error
	if p := s.m.placeOf("memory"); p != nil {
		if p.h.v2 {
			s.mem, err = openMemoryV2(o, dirs[p])
		} else {
			s.mem, err = openMemoryV1(o, dirs[p])
		}
		if err != nil {
			s.mem = nil
			return err
		}
		if s.watcher, err = startWatcher(s); err != nil {
			return err
		}
	}
	if p := s.m.placeOf("pids"); p != nil {
		if s.pids, err = openPids(o, dirs[p]); err != nil {
			return err
		}
		s.pids.inV1 = !p.h.v2
	}
	if p := s.m.placeOf("cpuacct"); p != nil {
		s.cpu, err = openCPUV1(o, dirs[p])
	} else if s.v2 != "" {
		s.cpu, err = openCPUV2(o, s.v2)
	}
	return err
}

// FD is the descriptor of the slot's version 2 group for CLONE_INTO_CGROUP; -1
// where there is none. It belongs to the slot: an os.File made of it would close
// it in its own time.
func (s *Slot) FD() int {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return -1
	}
	return s.v2fd
}

// Enter moves the slot's spawner into its version 1 groups, once; where there are
// none it does nothing. The spawner must have a process of its own: never the
// engine's, which Kill would end and the limits would starve.
func (s *Slot) Enter(pid int) error {
	return s.EnterBy(pid, func(tasks []string) error {
		for _, file := range tasks {
			if err := s.m.ops.writeFile(filepath.Join(filepath.Dir(file), "cgroup.procs"), strconv.Itoa(pid)); err != nil {
				return err
			}
		}
		return nil
	})
}

// EnterBy is Enter with the spawner's own help: move lets it write "0" into each
// of the files named, with one thread. To move a process from outside the kernel
// stops every fork of the host for a moment, which takes an RCU grace period of
// several milliseconds; a thread that moves itself needs none of that.
func (s *Slot) EnterBy(pid int, move func(tasks []string) error) error {
	s.life.RLock()
	defer s.life.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case pid <= 0 || pid == os.Getpid():
		return fmt.Errorf("enter %s: process %d cannot be a spawner", s.name, pid)
	case len(s.v1) == 0:
		return nil
	case s.spawner.pid != 0:
		return fmt.Errorf("enter %s: it has a spawner", s.name)
	}
	start, _, err := procStat(pid)
	if err != nil {
		return fmt.Errorf("enter %s: %w", s.name, err)
	}
	files := make([]string, 0, len(s.v1))
	for _, dir := range s.v1 {
		files = append(files, filepath.Join(dir, "tasks"))
	}
	if err := move(files); err != nil {
		return fmt.Errorf("enter %s: %w", s.name, err)
	}
	s.spawner = owner{pid: pid, start: start}
	if s.pids != nil && s.pids.inV1 {
		threads, err := s.pids.current.readInt()
		if err != nil {
			return fmt.Errorf("enter %s: %w", s.name, err)
		}
		s.extra = initProcesses + threads
	}
	if s.mem != nil {
		if s.base, err = s.mem.usage(); err != nil {
			return fmt.Errorf("enter %s: %w", s.name, err)
		}
	}
	return nil
}

// maxPids is the most that the kernel takes for pids.max (PID_MAX_LIMIT).
const maxPids = 1 << 22

// Arm sets the limits of the next run and starts its counting. The slot must be
// idle. After an error it is not fit for a run until a later Arm succeeds.
func (s *Slot) Arm(l Limits) error {
	s.life.RLock()
	defer s.life.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if l.MemoryBytes <= 0 || l.Processes <= 0 {
		return fmt.Errorf("arm %s: limits of %d bytes and %d processes", s.name, l.MemoryBytes, l.Processes)
	}
	if err := s.arm(l); err != nil {
		s.armed = armed{}
		return fmt.Errorf("arm %s: %w", s.name, err)
	}
	// A signal of an earlier run that nobody took is not this run's.
	select {
	case <-s.oom:
	default:
	}
	return nil
}

func (s *Slot) arm(l Limits) (err error) {
	a := armed{limit: l.MemoryBytes}
	if s.mem != nil {
		limit := l.MemoryBytes
		if limit < math.MaxInt64-s.base {
			limit += s.base
		}
		if err := s.mem.setLimit(limit); err != nil {
			return err
		}
		if err := s.mem.resetPeak(); err != nil {
			return err
		}
		if a.usage, err = s.mem.usage(); err != nil {
			return err
		}
		if a.oomKills, err = s.mem.oomKills(); err != nil {
			return err
		}
	}
	if s.pids != nil {
		if err := s.pids.max.writeInt(min(l.Processes, maxPids-s.extra) + s.extra); err != nil {
			return err
		}
		if a.refused, err = s.pids.events.readKey("max"); err != nil {
			return err
		}
		if a.pidsPeak, err = s.pids.readPeak(); err != nil {
			return err
		}
	}
	if s.cpu != nil {
		if a.cpu, err = s.cpu.read(); err != nil {
			return err
		}
	}
	s.armed = a
	return nil
}

// Stats reads what the run used since Arm.
func (s *Slot) Stats() (Stats, error) {
	s.life.RLock()
	defer s.life.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Stats{}, ErrClosed
	}
	st, err := s.stats()
	if err != nil {
		return Stats{}, fmt.Errorf("read use of %s: %w", s.name, err)
	}
	return st, nil
}

func (s *Slot) stats() (Stats, error) {
	st := Stats{MemoryPeak: -1, CPU: -1, PidsPeak: -1}
	a := &s.armed
	if s.mem != nil {
		kills, err := s.mem.oomKills()
		if err != nil {
			return st, err
		}
		st.OOMKills = kills - a.oomKills
		peak, err := s.mem.peak()
		if err != nil {
			return st, err
		}
		switch {
		case peak < 0:
		case a.limit > 0 && peak >= a.limit+s.base-int64(os.Getpagesize()):
			// At the limit what was left from before has been pushed out.
			st.MemoryPeak = a.limit
		default:
			st.MemoryPeak = max(0, peak-a.usage)
		}
	}
	if s.pids != nil {
		refused, err := s.pids.events.readKey("max")
		if err != nil {
			return st, err
		}
		if a.stopped {
			refused = min(refused, a.refusedEnd)
		}
		st.PidsRefused = refused - a.refused
		peak, err := s.pids.readPeak()
		if err != nil {
			return st, err
		}
		// The kernel's figure covers the group's whole life: it tells something of
		// this run only when this run has raised it.
		if peak > a.pidsPeak {
			st.PidsPeak = max(0, peak-s.extra)
		}
	}
	if s.cpu != nil {
		used, err := s.cpu.read()
		if err != nil {
			return st, err
		}
		st.CPU = time.Duration(used - a.cpu)
	}
	return st, nil
}

// OOM gets a value when the kernel has killed a process of the armed run for want
// of memory. Other processes of the run may live on: see [Slot.Kill].
func (s *Slot) OOM() <-chan struct{} { return s.oom }

// signalOOM signals if there was a kill since Arm. It does both under the lock,
// so that no signal of one run reaches the next. It is for the watcher, which
// Close waits for before it closes files.
func (s *Slot) signalOOM() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.mem.oomKills()
	if err != nil || n <= s.armed.oomKills {
		return false, err
	}
	select {
	case s.oom <- struct{}{}:
	default:
	}
	return true, nil
}

// Close ends everything in the slot, the spawner too, and removes its groups.
func (s *Slot) Close() error {
	s.stopped.Do(func() { close(s.stop) })
	s.life.Lock()
	defer s.life.Unlock()
	return s.destroy()
}

// destroy is Close with life held.
func (s *Slot) destroy() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.stopped.Do(func() { close(s.stop) })
	s.m.forget(s)
	if s.watcher != nil {
		s.watcher.close()
	}
	errs := []error{s.kill(s.v1, func(int) bool { return false })}
	if s.mem != nil {
		s.mem.close()
	}
	s.pids.close()
	s.cpu.close()
	s.populated.close()
	s.killer.close()
	if s.v2fd >= 0 {
		unix.Close(s.v2fd)
		s.v2fd = -1
	}
	for _, dir := range append(s.v1, s.v2) {
		if dir != "" {
			errs = append(errs, s.m.ops.removeGroup(dir, 2*time.Second))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", s.name, err)
	}
	return nil
}
