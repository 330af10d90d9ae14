package bridge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/belljar/belljar"
)

// The messages of the control socket: two letters, the version of the wire, and
// what it is about.
const (
	msgOpen   = "bj\x01\x01" // "give me a stream"; and the answer that brings one
	msgRefuse = "bj\x01\x02" // the answer that brings none; the body of an error follows
)

// control is the host's end of the control socket. It is used once a process
// and idle between, so it sits in the runtime's poller and takes no thread.
type control struct {
	file *os.File
	raw  syscall.RawConn
}

func newControl(fd int) (*control, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set up the bridge's control socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "bridge")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("set up the bridge's control socket: %w", err)
	}
	return &control{f, raw}, nil
}

func (c *control) close() { c.file.Close() }

// receive returns the next message, cut at len(buf).
func (c *control) receive(buf []byte) (n int, err error) {
	again := c.raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), buf)
		for err == unix.EINTR {
			n, err = unix.Read(int(fd), buf)
		}
		if err == nil && n == 0 && hungUp(int(fd)) {
			err = io.EOF
		}
		return err != unix.EAGAIN
	})
	return n, errors.Join(again, err)
}

// hungUp tells the end of the socket from an empty message.
func hungUp(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, err := unix.Poll(p, 0)
	return err != nil || p[0].Revents&unix.POLLHUP != 0
}

// send sends one message, and with it the descriptor pass unless that is negative.
func (c *control) send(msg []byte, pass int) (err error) {
	var rights []byte
	if pass >= 0 {
		rights = unix.UnixRights(pass)
	}
	again := c.raw.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), msg, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		for err == unix.EINTR {
			err = unix.Sendmsg(int(fd), msg, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		}
		return err != unix.EAGAIN
	})
	return errors.Join(again, err)
}

// serveControl gives a stream to each process that asks, one after the other: a
// run that asks and does not read the answers waits for itself.
func (b *Bridge) serveControl() {
	defer b.leave()
	var buf [16]byte
	for {
		n, err := b.control.receive(buf[:])
		if err != nil {
			return // the bridge was closed, or no process holds the other end
		}
		if err := b.answerControl(buf[:n]); err != nil {
			return
		}
	}
}

// answerControl answers one message. An error means that the socket is of no
// more use.
func (b *Bridge) answerControl(msg []byte) error {
	if string(msg) != msgOpen {
		return b.refuse(badFrame("", "this is no message of the bridge"))
	}
	s, end, err := b.newStream()
	if err != nil {
		var told *belljar.ToolError
		switch {
		case errors.Is(err, ErrClosed):
			return err
		case !errors.As(err, &told):
			b.fault(err)
			told = &belljar.ToolError{Code: "failed", Reason: "no stream to the tools could be made"}
		}
		return b.refuse(told)
	}
	go s.serve()
	err = b.control.send([]byte(msgOpen), end)
	unix.Close(end)
	if err != nil {
		s.stop(ErrGone)
		if errors.Is(err, unix.ETOOMANYREFS) {
			return b.refuse(&belljar.ToolError{Code: "too_many_streams", Reason: "too many streams were asked for and not taken"})
		}
	}
	return err
}

func (b *Bridge) refuse(why *belljar.ToolError) error {
	return b.control.send(append([]byte(msgRefuse), encodeError(why)...), -1)
}
