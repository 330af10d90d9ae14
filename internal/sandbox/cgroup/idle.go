//go:build linux

package cgroup

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const (
	// idlePatience bounds Idle where the context does not.
	idlePatience = 2 * time.Second
	// idleSlack is what may stay charged between runs: kernel objects that are
	// freed late.
	idleSlack = 1 << 20
	// chargedAhead is what each processor may hold charged to a group in advance
	// (64 pages).
	chargedAhead = 256 << 10
)

func slack() int64 { return idleSlack + chargedAhead*int64(min(runtime.NumCPU(), 16)) }

// Idle waits after a run until only the spawner remains in the slot and what the
// run had charged to it has been given back. It waits two seconds at most, less
// when ctx ends. False means that the slot must be closed and not used again:
// something in it does not die, memory stays charged, or the spawner has gone.
func (s *Slot) Idle(ctx context.Context) (clean bool, err error) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return false, ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, idlePatience)
	defer cancel()
	pause := 200 * time.Microsecond
	wait := func() bool {
		select {
		case <-ctx.Done():
			return false
		case <-s.stop:
			return false
		case <-time.After(pause):
			pause = min(2*pause, 20*time.Millisecond)
			return true
		}
	}
	for {
		empty, err := s.alone()
		if err != nil {
			return false, fmt.Errorf("wait for %s: %w", s.name, err)
		}
		if empty {
			break
		}
		if !wait() {
			return false, nil
		}
	}
	if !s.spawnerLives() {
		return false, nil
	}
	if s.mem == nil {
		return true, nil
	}
	for try := 0; ; try++ {
		settled, err := s.settled()
		if err != nil {
			return false, fmt.Errorf("wait for %s: %w", s.name, err)
		}
		if settled {
			return true, nil
		}
		// Most of what is left over goes by itself, some milliseconds after the
		// last process. Shrinking is dear, so it comes later, and not often.
		if try == 5 || try > 5 && try%20 == 0 {
			if err := s.shrink(); err != nil {
				return false, fmt.Errorf("empty %s: %w", s.name, err)
			}
			continue
		}
		if !wait() {
			return s.droppable()
		}
	}
}

// alone reports whether all processes of the run have ended and been waited for:
// a zombie still counts against pids.max.
func (s *Slot) alone() (bool, error) {
	spare := s.spares()
	listed := 0
	for _, dir := range s.v1[:min(1, len(s.v1))] {
		pids, err := readPids(dir)
		if err != nil {
			return false, err
		}
		for _, pid := range pids {
			if !spare(pid) {
				listed++
			}
		}
	}
	empty, err := s.empty(listed)
	if err != nil || !empty || s.pids == nil {
		return empty, err
	}
	n, err := s.pids.current.readInt()
	if err != nil || n == 0 {
		return err == nil, err
	}
	s.mu.Lock()
	spawner := s.spawner.pid
	s.mu.Unlock()
	return s.pids.inV1 && spawner != 0 && n <= threads(spawner), nil
}

// spawnerLives is true where there never was one.
func (s *Slot) spawnerLives() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spawner.pid == 0 || s.spawner.alive()
}

func (s *Slot) settled() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.mem.usage()
	return err == nil && n <= s.base+slack(), err
}

func (s *Slot) shrink() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mem.shrink()
}

// droppable reports whether what is left is page cache that the kernel could not
// drop yet but will when the next run needs the room.
func (s *Slot) droppable() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.mem.usage()
	if err != nil {
		return false, err
	}
	cached, err := s.mem.cached()
	return err == nil && n-cached <= s.base+slack(), err
}
