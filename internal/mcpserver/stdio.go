package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// maxLine bounds one message, in bytes.
const maxLine = 16 << 20

// Stdio makes the transport over this process's stdin and stdout and takes stdout
// away from everything else: from here on the descriptor 1 and os.Stdout lead to
// stderr, for this process and the ones it starts. A stray print can then not
// pass for protocol.
func Stdio() (mcp.Transport, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("keep stdout for the protocol: %w", err)
	}
	if err := unix.Dup3(2, 1, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("lead stdout to stderr: %w", err), unix.Close(fd))
	}
	out := os.NewFile(uintptr(fd), "protocol")
	os.Stdout = os.Stderr
	return Pipes(os.Stdin, out), nil
}

// Pipes makes a transport of one JSON message per line.
func Pipes(r io.ReadCloser, w io.WriteCloser) mcp.Transport { return pipes(r, w, farewell) }

func pipes(r io.ReadCloser, w io.WriteCloser, patience time.Duration) mcp.Transport {
	out := &lockedWriter{w: w}
	in := &frames{Closer: r, r: bufio.NewReaderSize(r, 64<<10), max: maxLine, reply: replier(out, patience)}
	return &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: -1} // frames holds the bound
}

// lockedWriter keeps the replies of frames and the SDK's messages apart. Each
// Write is one whole line.
type lockedWriter struct {
	mu sync.Mutex
	w  io.WriteCloser
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *lockedWriter) Close() error { return l.w.Close() }

// replier writes the replies of frames, each within patience. Of a client that
// takes none, frames must still see the end: what is not taken in time is written
// later, and what comes before that is dropped.
func replier(out io.Writer, patience time.Duration) func([]byte) {
	free := make(chan struct{}, 1)
	free <- struct{}{}
	return func(b []byte) {
		select {
		case <-free:
		default:
			return
		}
		go func() {
			_, _ = out.Write(b) // a client that is gone is noticed by the session's own writes
			free <- struct{}{}
		}()
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-free:
			free <- struct{}{}
		case <-late.C:
		}
	}
}

// frames passes on the lines that are JSON-RPC messages. The SDK ends a session
// at the first line that is not; here such a line gets an error reply, as the
// standard asks, and the session lives on.
type frames struct {
	io.Closer
	r     *bufio.Reader
	max   int
	reply func([]byte)
	ready []byte // of a good line, what was not read yet
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		line, err := f.line()
		if len(line) > 0 {
			f.ready = f.check(line)
		}
		if err != nil && len(f.ready) == 0 {
			return 0, err
		}
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
	return n, nil
}

// line reads the next line without its end. A line over the bound is read to its
// end and answered, and gives nothing.
func (f *frames) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := f.r.ReadSlice('\n')
		if len(line)+len(part) > f.max {
			long, line = true, nil
		}
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long {
			f.answer(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("message of more than %d bytes", f.max))
		}
		return bytes.TrimSpace(line), err
	}
}

// check gives the line as the SDK may have it, or answers it and gives nothing.
func (f *frames) check(line []byte) []byte {
	switch {
	case !json.Valid(line):
		f.answer(nil, jsonrpc.CodeParseError, "the line is no JSON")
		return nil
	case line[0] == '[':
		f.answer(nil, jsonrpc.CodeInvalidRequest, "batching is not supported")
		return nil
	case !goodID(idOf(line)):
		f.answer(idOf(line), jsonrpc.CodeInvalidRequest, "an id is a string or a whole number of at most 15 digits")
		return nil
	default:
		if _, err := jsonrpc.DecodeMessage(line); err != nil {
			f.answer(idOf(line), jsonrpc.CodeInvalidRequest, "the line is no JSON-RPC 2.0 message")
			return nil
		}
	}
	return append(line, '\n')
}

// idOf is the id of something that was meant as a request, null if it has none.
func idOf(line []byte) json.RawMessage {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(line, &m) != nil || len(m.ID) == 0 || m.ID[0] == '{' || m.ID[0] == '[' {
		return nil
	}
	return m.ID
}

// goodID tells whether the answer will have exactly this id. The SDK keeps numbers
// as the nearest integer, by which 1.5 would get the answer of 1.
func goodID(id json.RawMessage) bool {
	if len(id) == 0 || id[0] < '0' && id[0] != '-' || id[0] > '9' {
		return true // none, or none that is a number
	}
	digits := bytes.TrimPrefix(id, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(digits) <= 15 && string(id) != "-0"
}

func (f *frames) answer(id json.RawMessage, code int64, message string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	var reply struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	reply.Version, reply.ID = "2.0", id
	reply.Error.Code, reply.Error.Message = code, message
	b, err := json.Marshal(reply)
	if err != nil {
		return // nothing in it can fail to encode
	}
	f.reply(append(b, '\n'))
}
