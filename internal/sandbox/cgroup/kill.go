//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killPatience bounds how long Kill waits for processes to be gone. One that
// sits in the kernel (a dead network file system) may take longer.
const killPatience = 3 * time.Second

// killBatch bounds the descriptors held at once.
const killBatch = 64

// Kill ends everything in the slot except its spawner, and returns when it is
// gone. It needs no new process, so it works on a fork bomb. From then
// until Arm nothing can be started in it, as far as pids are limited.
func (s *Slot) Kill() error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.kill(s.v1[:min(1, len(s.v1))], s.spares()); err != nil {
		return fmt.Errorf("kill %s: %w", s.name, err)
	}
	return nil
}

// spares gives the test for the spawner. It is made anew for each use: once the
// spawner has died, its number may be that of a process of the run.
func (s *Slot) spares() func(pid int) bool {
	s.mu.Lock()
	spawner := s.spawner
	s.mu.Unlock()
	alive := spawner.pid != 0 && spawner.alive()
	return func(pid int) bool { return alive && pid == spawner.pid }
}

// kill ends what is in the version 2 group and in the given version 1 groups.
func (s *Slot) kill(v1 []string, spare func(pid int) bool) error {
	// Forking ends first: killing by list loses against a program that forks faster
	// than we read, and a run that is only just being started must not come after
	// its own end.
	if err := s.stopForks(); err != nil {
		return err
	}
	end := time.Now().Add(killPatience)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		if s.killer != nil {
			if err := s.killer.write("1"); err != nil {
				return err
			}
		}
		left, err := s.killLists(v1, spare)
		if err != nil {
			return err
		}
		empty, err := s.empty(left)
		if err != nil {
			return err
		}
		if empty {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes do not end", max(left, 1))
		}
		time.Sleep(pause)
	}
}

// killLists kills by process list, which is also how the version 2 group is ended
// before Linux 5.14, and returns how many it found.
func (s *Slot) killLists(dirs []string, spare func(pid int) bool) (left int, err error) {
	if s.v2 != "" && s.killer == nil {
		dirs = append(slices.Clone(dirs), s.v2)
	}
	for _, dir := range dirs {
		n, err := killGroup(dir, spare)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return left, err
		}
		left += n
	}
	return left, nil
}

// stopForks lowers pids.max to nothing until the next Arm. Refusals from here on
// are our doing and not the program's.
func (s *Slot) stopForks() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pids == nil {
		return nil
	}
	n, err := s.pids.events.readKey("max")
	if err != nil {
		return err
	}
	if !s.armed.stopped {
		s.armed.stopped, s.armed.refusedEnd = true, n
	}
	return s.pids.max.write("0")
}

// empty reports whether nothing but the spawner is left, given how many others
// the version 1 lists showed.
func (s *Slot) empty(listed int) (bool, error) {
	if listed > 0 || s.populated == nil {
		return listed == 0, nil
	}
	n, err := s.populated.readKey("populated")
	return n == 0, err
}

// killGroup sends SIGKILL to the processes of one group and returns how many it
// found. A number alone could by then belong to another process, so each is
// pinned by a descriptor first and then looked up in the list once more: what is
// still listed then is the process that the descriptor holds.
func killGroup(dir string, spare func(pid int) bool) (found int, err error) {
	listed, err := readPids(dir)
	if err != nil {
		return 0, err
	}
	me := os.Getpid()
	listed = slices.DeleteFunc(listed, func(pid int) bool { return pid == me || spare(pid) })
	for batch := range slices.Chunk(listed, killBatch) {
		if err := killPinned(dir, batch); err != nil {
			return len(listed), err
		}
	}
	return len(listed), nil
}

func killPinned(dir string, batch []int) error {
	fds := make(map[int]int, len(batch))
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for _, pid := range batch {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case err == nil:
			fds[pid] = fd
		case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL): // gone, or its first thread is
		default:
			return fmt.Errorf("pin process %d: %w", pid, err)
		}
	}
	again, err := readPids(dir)
	if err != nil {
		return err
	}
	for _, pid := range again {
		fd, ok := fds[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}

// threads counts the threads of a process, 0 when it is gone.
func threads(pid int) int64 {
	entries, err := os.ReadDir(filepath.Join("/proc", fmt.Sprint(pid), "task"))
	if err != nil {
		return 0
	}
	return int64(len(entries))
}
