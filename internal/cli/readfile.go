package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var (
	errTooLong  = errors.New("it is too large")
	errNoWriter = errors.New("it is a named pipe that nobody writes to")
)

// readFile reads a file that the command line names, at most so many bytes of it,
// until the context ends. It never waits for a writer of a pipe to come: a named
// one without any is an error. Pipes that have no name of their own (/dev/stdin,
// /dev/fd/N of a shell's <(...)) are read to their end.
func readFile(ctx context.Context, path string, most int64) ([]byte, error) {
	// Without O_NONBLOCK the opening itself waits for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("it is a folder")
	}
	// What cannot be waited for (a regular file) has no deadline and needs none.
	release := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer release()
	var in io.Reader = f
	if info.Mode()&fs.ModeNamedPipe != 0 && !nameless(f) {
		in = &named{f: f, end: time.Now().Add(grace)}
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && int64(len(data)) > most:
		err = errTooLong
	}
	return data, err
}

// nameless tells whether an opened pipe is one that no path of a file leads to.
func nameless(f *os.File) bool {
	raw, err := f.SyscallConn() // File.Fd could make it one that blocks
	if err != nil {
		return false
	}
	target := ""
	err = raw.Control(func(fd uintptr) {
		target, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	})
	return err == nil && strings.HasPrefix(target, "pipe:")
}

// named reads a named pipe. Without a writer it is at its end from the start,
// which is no end before the writer that was started beside us has come.
type named struct {
	f    *os.File
	end  time.Time // until which the first byte may take
	some bool
}

func (n *named) Read(p []byte) (int, error) {
	for {
		got, err := n.f.Read(p)
		if got > 0 {
			n.some = true
		}
		if n.some || !errors.Is(err, io.EOF) {
			return got, err
		}
		if time.Now().After(n.end) {
			return 0, errNoWriter
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// bare takes path and operation out of an error: the sentence has the path.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
