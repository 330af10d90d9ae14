package audit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// descriptors lists the open files of this process that lie beneath dir.
func descriptors(t *testing.T, dir string) map[int]string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]string{}
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || !strings.HasPrefix(target, dir) {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		out[fd] = target
	}
	return out
}

// A run must not inherit the journal, and a closed journal leaves nothing open.
func TestDescriptors(t *testing.T) {
	path := place(t)
	dir := filepath.Dir(path)
	j := open(t, Config{Path: path})
	appendAll(t, j, call("run_1", "x"))
	list(t, j, Filter{})
	open := descriptors(t, dir)
	if len(open) == 0 {
		t.Fatal("the journal has no file open")
	}
	for fd, name := range open {
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d (%s) would be inherited: flags %d, %v", fd, name, flags, errno)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if left := descriptors(t, dir); len(left) != 0 {
		t.Errorf("left open: %v", left)
	}
}
