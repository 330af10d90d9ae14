//go:build linux

package cgroup

import (
	"os"
	"sync"
	"time"
)

// watcher turns the kernel's notices into signals on Slot.OOM. It owns one
// goroutine, which waits in the runtime's poller and so costs no thread.
type watcher struct {
	file  *os.File
	early bool // see memory.watch
	done  sync.WaitGroup
}

// startWatcher returns nil where the kernel has no notices.
func startWatcher(s *Slot) (*watcher, error) {
	f, early, err := s.mem.watch()
	if f == nil {
		return nil, err
	}
	w := &watcher{file: f, early: early}
	w.done.Go(func() { w.run(s) })
	return w, nil
}

func (w *watcher) run(s *Slot) {
	var buf [4096]byte
	for {
		if _, err := w.file.Read(buf[:]); err != nil {
			return // closed
		}
		w.confirm(s)
	}
}

// confirm waits for the kill that a notice announces. Some notices announce none:
// the group went away, a group above it ran out and lost another process, or (in
// version 2) another counter moved.
func (w *watcher) confirm(s *Slot) {
	const most = 5 * time.Millisecond
	pause := 100 * time.Microsecond
	for range 100 {
		hit, err := s.signalOOM()
		if hit || err != nil {
			return // an error: the group is gone; Stats tells what is wrong otherwise
		}
		if !w.early {
			return // counted before the notice, so nothing is to come
		}
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
			pause = min(2*pause, most)
		}
	}
}

// close waits for the goroutine. The slot's stop is closed before.
func (w *watcher) close() {
	w.file.Close()
	w.done.Wait()
}
