//go:build linux

package cgroup

import (
	"errors"
	"os"
)

// memory is the memory controller of one group, in either version. Its methods
// are for one goroutine at a time.
type memory interface {
	// setLimit bounds memory and swap together.
	setLimit(bytes int64) error
	usage() (int64, error)
	resetPeak() error
	peak() (int64, error) // since resetPeak; -1 when the kernel cannot tell
	// oomKills counts for the group's whole life.
	oomKills() (int64, error)
	// cached is page cache that the kernel drops by itself when it needs room.
	cached() (int64, error)
	// shrink asks the kernel to drop what it can.
	shrink() error
	// watch opens a file that becomes readable when memory ran out; early says that
	// this is before oomKills has counted the kill. No file without an error means
	// that the kernel gives no notice.
	watch() (f *os.File, early bool, err error)
	close()
}

// files opens several control files; the first error wins, and then none stay
// open.
type files struct {
	ops  *ops
	dir  string
	open []*control
	err  error
}

func (f *files) get(name string, flags int) *control { return f.take(name, flags, f.ops.open) }

// getIf gives nil for a file that this kernel does not have.
func (f *files) getIf(name string, flags int) *control { return f.take(name, flags, f.ops.openIf) }

func (f *files) take(name string, flags int, open func(string, int) (*control, error)) *control {
	if f.err != nil {
		return nil
	}
	c, err := open(f.dir+"/"+name, flags)
	if err != nil {
		f.err = err
		f.close()
		return nil
	}
	if c != nil {
		f.open = append(f.open, c)
	}
	return c
}

func (f *files) close() {
	for _, c := range f.open {
		c.close()
	}
	f.open = nil
}

// sumKeys adds up numbers of memory.stat, which is too long and too slow to read
// for a file kept open.
func sumKeys(path string, keys ...string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, k := range keys {
		n, err := parseKey(data, k)
		if err != nil {
			return 0, errors.Join(errors.New("read "+path), err)
		}
		sum += n
	}
	return sum, nil
}
