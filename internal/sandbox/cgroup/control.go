//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ops are the few things that a recorded tree in a temporary folder cannot do by
// itself: a new group has its control files at once, goes away with them, and may
// belong to somebody else.
type ops struct {
	owned func(uid uint32) bool // a group of that user was handed to us
	mkdir func(path string) error
	rmdir func(path string) error
	wrote func(path, value string) // sees each write; nil outside tests
}

func kernelOps() *ops {
	return &ops{
		// Root owns nearly everything, so for root it means nothing.
		owned: func(uid uint32) bool { return uid != 0 && int(uid) == os.Geteuid() },
		mkdir: func(path string) error { return os.Mkdir(path, 0o755) },
		rmdir: func(path string) error {
			if err := unix.Rmdir(path); err != nil {
				return &fs.PathError{Op: "rmdir", Path: path, Err: err}
			}
			return nil
		},
	}
}

// removeGroup removes a group, and waits a little for the kernel, which refuses
// while the last process is still on its way out.
func (o *ops) removeGroup(path string, patience time.Duration) error {
	end := time.Now().Add(patience)
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := o.rmdir(path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return fmt.Errorf("remove control group: %w", err)
		}
		time.Sleep(pause)
	}
}

// control is an open control file. It is read and written at offset 0 again and
// again: one system call for each, where opening would make it three.
type control struct {
	path string
	fd   int
	ops  *ops
}

func (o *ops) open(path string, flags int) (*control, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return &control{path: path, fd: fd, ops: o}, nil
	}
}

// openIf is open for a file that not every kernel has: nil without an error when
// it is not there.
func (o *ops) openIf(path string, flags int) (*control, error) {
	c, err := o.open(path, flags)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return c, err
}

// writeFile writes to a control file that is not worth keeping open.
func (o *ops) writeFile(path, value string) error {
	c, err := o.open(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer c.close()
	return c.write(value)
}

func (c *control) close() {
	if c != nil && c.fd >= 0 {
		unix.Close(c.fd)
		c.fd = -1
	}
}

func (c *control) write(value string) error {
	for {
		_, err := unix.Pwrite(c.fd, []byte(value+"\n"), 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "write " + value + " to", Path: c.path, Err: err}
		}
		if c.ops.wrote != nil {
			c.ops.wrote(c.path, value)
		}
		return nil
	}
}

func (c *control) writeInt(n int64) error { return c.write(strconv.FormatInt(n, 10)) }

// read fills buf from the start of the file. All hot files are far smaller than
// the buffers given.
func (c *control) read(buf []byte) ([]byte, error) {
	for {
		n, err := unix.Pread(c.fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: c.path, Err: err}
		}
		return buf[:n], nil
	}
}

func (c *control) readInt() (int64, error) {
	var buf [64]byte
	data, err := c.read(buf[:])
	if err != nil {
		return 0, err
	}
	n, err := parseNumber(data)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", c.path, err)
	}
	return n, nil
}

func (c *control) readKey(key string) (int64, error) {
	var buf [1024]byte
	data, err := c.read(buf[:])
	if err != nil {
		return 0, err
	}
	n, err := parseKey(data, key)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", c.path, err)
	}
	return n, nil
}

// readPids reads the process list of a group. It opens the file each time: the
// kernel keeps the list of an open file for up to a second.
func readPids(dir string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	pids, err := parsePids(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, "cgroup.procs"), err)
	}
	return pids, nil
}
