//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// memoryV1 follows Documentation/admin-guide/cgroup-v1/memory.rst.
type memoryV1 struct {
	files
	limit *control // memory.limit_in_bytes
	swap  *control // memory.memsw.limit_in_bytes; nil where swap is not counted
	used  *control
	most  *control // memory.max_usage_in_bytes; writing resets it
	oom   *control
	// socks is memory.kmem.tcp.limit_in_bytes, which in spite of its name is about
	// the buffers of all sockets: version 1 counts them only when it is set, and
	// apart from all other memory. nil where the kernel lacks it.
	socks *control

	last int64 // the limit as set last; 0 before that (unlimited), -1 unknown
}

func openMemoryV1(o *ops, dir string) (memory, error) {
	m := &memoryV1{files: files{ops: o, dir: dir}}
	m.limit = m.get("memory.limit_in_bytes", unix.O_RDWR)
	m.swap = m.getIf("memory.memsw.limit_in_bytes", unix.O_RDWR)
	m.used = m.get("memory.usage_in_bytes", unix.O_RDONLY)
	m.most = m.get("memory.max_usage_in_bytes", unix.O_RDWR)
	m.oom = m.get("memory.oom_control", unix.O_RDONLY)
	m.socks = m.getIf("memory.kmem.tcp.limit_in_bytes", unix.O_RDWR)
	return m, m.err
}

// setLimit keeps to the kernel's rule that memory alone may never be allowed more
// than memory and swap: the outer limit is raised first and lowered last.
func (m *memoryV1) setLimit(bytes int64) error {
	if bytes == m.last {
		return nil
	}
	lowering, raising := []*control{m.limit, m.swap}, []*control{m.swap, m.limit}
	last := m.last
	m.last = -1 // unknown, should one of the two writes fail
	var err error
	switch {
	case last < 0:
		err = m.setInOrder(lowering, bytes)
		if errors.Is(err, unix.EINVAL) {
			err = m.setInOrder(raising, bytes)
		}
	case last == 0 || bytes < last:
		err = m.setInOrder(lowering, bytes)
	default:
		err = m.setInOrder(raising, bytes)
	}
	if err == nil && m.socks != nil {
		err = m.socks.writeInt(bytes / socketShare)
	}
	if err == nil {
		m.last = bytes
	}
	return err
}

// socketShare is the part of the memory limit that socket buffers may take on top.
const socketShare = 8

func (m *memoryV1) setInOrder(order []*control, bytes int64) error {
	for _, c := range order {
		if c == nil {
			continue
		}
		err := c.writeInt(bytes)
		if errors.Is(err, unix.EBUSY) {
			// More is in use than the new limit, and the kernel's own attempt to
			// drop some of it did not suffice.
			if err := m.shrink(); err != nil {
				return err
			}
			err = c.writeInt(bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryV1) usage() (int64, error)    { return m.used.readInt() }
func (m *memoryV1) resetPeak() error         { return m.most.write("0") }
func (m *memoryV1) peak() (int64, error)     { return m.most.readInt() }
func (m *memoryV1) oomKills() (int64, error) { return m.oom.readKey("oom_kill") }

func (m *memoryV1) cached() (int64, error) {
	return sumKeys(m.dir+"/memory.stat", "inactive_file", "active_file")
}

// shrink also gives back what processors hold charged in advance.
func (m *memoryV1) shrink() error { return m.ops.writeFile(m.dir+"/memory.force_empty", "0") }

// watch registers an eventfd for "out of memory". The kernel writes to it just
// before it kills, and once more when the group is removed.
func (m *memoryV1) watch() (f *os.File, early bool, err error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, false, fmt.Errorf("make an eventfd: %w", err)
	}
	f = os.NewFile(uintptr(fd), "eventfd of "+m.oom.path)
	err = m.ops.writeFile(m.dir+"/cgroup.event_control", fmt.Sprintf("%d %d", fd, m.oom.fd))
	if err != nil {
		f.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil // compiled out: kills are counted, not signalled
		}
		return nil, false, err
	}
	return f, true, nil
}
