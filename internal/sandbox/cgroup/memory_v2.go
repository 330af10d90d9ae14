//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// memoryV2 follows Documentation/admin-guide/cgroup-v2.rst.
type memoryV2 struct {
	files
	limit  *control // memory.max
	used   *control
	most   *control // memory.peak, since Linux 5.19
	events *control

	last       int64
	resettable bool // memory.peak can be reset through our descriptor, since 6.12
	old        int64
}

func openMemoryV2(o *ops, dir string) (memory, error) {
	m := &memoryV2{files: files{ops: o, dir: dir}}
	m.limit = m.get("memory.max", unix.O_RDWR)
	m.used = m.get("memory.current", unix.O_RDONLY)
	m.events = m.get("memory.events", unix.O_RDONLY)
	m.openPeak()
	// Never changed again. Without the second a run would live on with holes in
	// it after a kill; the first is absent where swap is not counted.
	for _, set := range []struct{ file, value string }{{"memory.swap.max", "0"}, {"memory.oom.group", "1"}} {
		c := m.getIf(set.file, unix.O_RDWR)
		if c == nil {
			continue
		}
		if err := c.write(set.value); err != nil && m.err == nil {
			m.err = err
			m.close()
		}
	}
	return m, m.err
}

// openPeak finds out what kind of memory.peak there is: the kernel gives a file
// that cannot be written before 6.12.
func (m *memoryV2) openPeak() {
	if m.err != nil {
		return
	}
	c, err := m.ops.open(m.dir+"/memory.peak", unix.O_RDWR)
	if err == nil && c.write("0") == nil {
		m.resettable = true
		m.most = c
		m.open = append(m.open, c)
		return
	}
	c.close()
	m.most = m.getIf("memory.peak", unix.O_RDONLY)
}

func (m *memoryV2) setLimit(bytes int64) error {
	if bytes == m.last {
		return nil
	}
	if err := m.limit.writeInt(bytes); err != nil {
		return err
	}
	m.last = bytes
	return nil
}

func (m *memoryV2) usage() (int64, error) { return m.used.readInt() }

func (m *memoryV2) resetPeak() (err error) {
	switch {
	case m.most == nil:
		return nil
	case m.resettable:
		return m.most.write("0")
	}
	m.old, err = m.most.readInt()
	return err
}

// peak cannot be told from a higher one of an earlier run where it cannot be
// reset.
func (m *memoryV2) peak() (int64, error) {
	if m.most == nil {
		return -1, nil
	}
	n, err := m.most.readInt()
	if err != nil {
		return 0, err
	}
	if !m.resettable && n <= m.old {
		return -1, nil
	}
	return n, nil
}

func (m *memoryV2) oomKills() (int64, error) { return m.events.readKey("oom_kill") }

func (m *memoryV2) cached() (int64, error) {
	return sumKeys(m.dir+"/memory.stat", "inactive_file", "active_file", "slab_reclaimable")
}

// shrink reports no error when less than everything could be dropped, which is
// the usual case and what EAGAIN means, nor on kernels before 5.19.
func (m *memoryV2) shrink() error {
	n, err := m.usage()
	if err != nil || n == 0 {
		return err
	}
	err = m.ops.writeFile(m.dir+"/memory.reclaim", fmt.Sprint(n))
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (m *memoryV2) watch() (f *os.File, early bool, err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, false, fmt.Errorf("watch memory events: %w", err)
	}
	f = os.NewFile(uintptr(fd), "inotify of "+m.events.path)
	if _, err := unix.InotifyAddWatch(fd, m.events.path, unix.IN_MODIFY); err != nil {
		f.Close()
		return nil, false, &fs.PathError{Op: "watch", Path: m.events.path, Err: err}
	}
	return f, false, nil
}
