//go:build linux

package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// prefix begins the name of every group of ours.
const prefix = "belljar-"

// leafName ends the name of the group we move ourselves into; see doc.go.
const leafName = "leaf"

// owner is the process that a group was made by. The start time tells it from a
// later process with the same id.
type owner struct {
	pid   int
	start uint64 // clock ticks after boot
}

// groupName names the group of this owner; part is a number or leafName.
func (o owner) groupName(part string) string {
	return fmt.Sprintf("%s%d-%d-%s", prefix, o.pid, o.start, part)
}

// parseGroupName is strict: what it accepts may be removed.
func parseGroupName(name string) (o owner, part string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return owner{}, "", false
	}
	f := strings.Split(rest, "-")
	if len(f) != 3 {
		return owner{}, "", false
	}
	pid, err := strconv.ParseInt(f[0], 10, 32)
	if err != nil || pid <= 0 {
		return owner{}, "", false
	}
	start, err := strconv.ParseUint(f[1], 10, 64)
	if err != nil {
		return owner{}, "", false
	}
	part = f[2]
	if part != leafName {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil || n == 0 {
			return owner{}, "", false
		}
		part = strconv.FormatUint(n, 10)
	}
	o = owner{pid: int(pid), start: start}
	if o.groupName(part) != name { // leading zeros
		return owner{}, "", false
	}
	return o, part, true
}

// alive reports whether the owner still runs, as far as our /proc shows it. A
// zombie does not run: everything it held is gone.
func (o owner) alive() bool {
	start, state, err := procStat(o.pid)
	return err == nil && start == o.start && state != 'Z' && state != 'X'
}

// procStat reads the start time (clock ticks after boot) and state of a process.
func procStat(pid int) (start uint64, state byte, err error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	return parseStat(data)
}

// parseStat reads fields 22 and 3 of proc_pid_stat(5). The name before them is
// the process's own choice and may hold spaces and brackets, so counting starts
// after the last bracket.
func parseStat(data []byte) (start uint64, state byte, err error) {
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return 0, 0, errors.New("read process state: no name")
	}
	f := bytes.Fields(data[i+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return 0, 0, errors.New("read process state: too few fields")
	}
	start, err = strconv.ParseUint(string(f[19]), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("read process state: %w", err)
	}
	return start, f[0][0], nil
}

// selfOwner names this process.
func selfOwner() (owner, error) {
	pid := os.Getpid()
	start, _, err := procStat(pid)
	if err != nil {
		return owner{}, fmt.Errorf("read our own start time: %w", err)
	}
	return owner{pid: pid, start: start}, nil
}

// serial numbers the groups of this process, so that several managers in it do
// not meet.
var serial atomic.Int64

// claimed is a group of ours with the lock that shows that we live.
type claimed struct {
	dir  string
	lock int // descriptor of dir
}

// claim makes a group beneath parent and locks it. part is a name for it, or ""
// for the next number.
func (o *ops) claim(self owner, parent, part string) (claimed, error) {
	for range 100 {
		p := part
		if p == "" {
			p = strconv.FormatInt(serial.Add(1), 10)
		}
		dir := filepath.Join(parent, self.groupName(p))
		err := o.mkdir(dir)
		if errors.Is(err, fs.ErrExist) && part == "" {
			continue
		}
		if err != nil {
			return claimed{}, err
		}
		fd, err := lockDir(dir)
		if err == nil {
			return claimed{dir: dir, lock: fd}, nil
		}
		// A sweeper in another pid namespace, which cannot see us, may take the
		// group for a dead one's in the moment before it is locked. Make another.
		if !errors.Is(err, errNotOurs) && !errors.Is(err, fs.ErrNotExist) {
			o.rmdir(dir)
			return claimed{}, err
		}
	}
	return claimed{}, fmt.Errorf("make a group in %s: names taken", parent)
}

// release lets go of the lock; the group itself must be gone by then. The zero
// value holds none.
func (c claimed) release() {
	if c.dir != "" {
		unix.Close(c.lock)
	}
}

// errNotOurs says that a folder is locked by somebody, or not the one it was.
var errNotOurs = errors.New("held by another process")

// lockDir takes the lock of a group's folder without waiting, and makes sure that
// the folder is still the one at that path.
func lockDir(dir string) (fd int, err error) {
	fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
			fd = -1
		}
	}()
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fd, fmt.Errorf("lock %s: %w", dir, errNotOurs)
		}
		return fd, &fs.PathError{Op: "lock", Path: dir, Err: err}
	}
	var have, want unix.Stat_t
	if err := unix.Fstat(fd, &have); err != nil {
		return fd, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if err := unix.Lstat(dir, &want); err != nil {
		return fd, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if have.Ino != want.Ino || have.Dev != want.Dev {
		return fd, fmt.Errorf("lock %s: %w", dir, errNotOurs)
	}
	return fd, nil
}
