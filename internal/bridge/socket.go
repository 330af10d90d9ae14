package bridge

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// socket is the host's end of a stream: a blocking socket that many goroutines
// use and any of them may shut. The number is closed only when nobody is inside
// a system call on it, since by then it may name another file.
type socket struct {
	fd int

	mu    sync.Mutex
	users int  // goroutines inside a system call
	gone  bool // shut; closed as soon as users is 0
}

func (s *socket) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	s.users++
	return true
}

func (s *socket) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.gone && s.users == 0 {
		unix.Close(s.fd)
	}
}

// shut ends the connection both ways; who is blocked on it returns at once.
func (s *socket) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	s.gone = true
	unix.Shutdown(s.fd, unix.SHUT_RDWR)
	if s.users == 0 {
		unix.Close(s.fd)
	}
}

// Read blocks its thread until something comes. Descriptors that the other side
// sends along are dropped by the kernel, because nobody asks for them.
func (s *socket) Read(p []byte) (int, error) {
	if !s.enter() {
		return 0, os.ErrClosed
	}
	defer s.leave()
	for {
		n, err := unix.Read(s.fd, p)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// send writes parts, and returns how many bytes went out. With
// unix.MSG_DONTWAIT it returns unix.EAGAIN instead of waiting.
func (s *socket) send(parts [][]byte, flags int) (int, error) {
	if !s.enter() {
		return 0, os.ErrClosed
	}
	defer s.leave()
	for {
		n, err := unix.SendmsgBuffers(s.fd, parts, nil, nil, flags|unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		return max(n, 0), err
	}
}
