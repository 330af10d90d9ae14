package cli

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// stdout says of a write that failed where it went and why, for every command.
type stdout struct{ io.Writer }

func (s stdout) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil {
		err = unwritten{err}
	}
	return n, err
}

type unwritten struct{ error }

func (u unwritten) Error() string {
	return fmt.Sprintf("stdout could not be written: %v", bare(u.error))
}
func (u unwritten) Unwrap() error { return u.error }

// leadsNowhere tells whether a descriptor is the null device, opened for reading
// as well: what Go makes of a descriptor that was closed when the program was
// started. Some programs give it to those they start when their output is not
// wanted, so it is worth a word and is no error.
func leadsNowhere(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(1, 3) {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}
