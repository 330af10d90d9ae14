package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belljar/belljar/internal/toolset/plain"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxGarbage is how many lines that are no messages a server may print in
	// its life. Some print a greeting; one that goes on is not speaking MCP.
	maxGarbage = 64
	// maxUnasked is how many messages that answer nothing may come in one go;
	// unaskedRate is how many a second may go on for ever.
	maxUnasked  = 20_000
	unaskedRate = 100
	// maxOpen is how many requests of its own a server may have open with us.
	maxOpen = 64
	// writeWait is how long a server may leave its stdin unread.
	writeWait = 30 * time.Second
)

// A wire is the server's side of the pipes.
type wire interface {
	io.ReadWriteCloser // Close ends reading and writing at once
	SetWriteDeadline(time.Time) error
}

// A capture takes the raw result of one request past the SDK.
type capture struct {
	stub   string // what the SDK gets instead
	id     jsonrpc.ID
	result json.RawMessage
}

type captureKey struct{}

const (
	callStub = `{"content":[]}`
	listStub = `{"tools":[]}`
)

// conn is the connection that the SDK speaks through. One goroutine reads; it
// ends when the wire is closed.
type conn struct {
	wire   wire
	limit  int           // bytes of one message
	probe  time.Duration // for server/discover: older servers should refuse it, and some keep silent
	write  chan struct{} // held while writing
	in     chan jsonrpc.Message
	closed chan struct{} // closed with fault set
	eof    chan struct{} // closed when the reader has ended
	stale  atomic.Bool   // the server says that its tools have changed

	mu       sync.Mutex
	fault    error // why it was closed
	captures map[jsonrpc.ID]*capture
	open     int     // requests of the server that are not answered
	unasked  float64 // a bucket that leaks unaskedRate a second
	leaked   time.Time
	garbage  int
	sample   string // the first line that was no message
	prober   *time.Timer
}

var _ mcp.Connection = (*conn)(nil)

func newConn(w wire, limit int, probe time.Duration) *conn {
	c := &conn{
		wire: w, limit: limit, probe: probe,
		write: make(chan struct{}, 1), in: make(chan jsonrpc.Message),
		closed: make(chan struct{}), eof: make(chan struct{}),
		captures: map[jsonrpc.ID]*capture{}, leaked: time.Now(),
	}
	go c.read()
	return c
}

// Connect makes a conn the transport of itself.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID is of HTTP only.
func (c *conn) SessionID() string { return "" }

// Close does not wait: the SDK calls it with a lock held.
func (c *conn) Close() error {
	c.fail(errClosed)
	return nil
}

var (
	errClosed  = errors.New("was closed")
	errNoProbe = errors.New("kept silent on server/discover")
)

// fail closes the connection; only the first cause is kept.
func (c *conn) fail(cause error) {
	c.mu.Lock()
	first := c.fault == nil
	if first {
		c.fault = cause
		if c.prober != nil {
			c.prober.Stop()
		}
		close(c.closed)
	}
	c.mu.Unlock()
	if first {
		c.wire.Close()
	}
}

func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// Read hands the SDK the next message that concerns it.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends one message. A context that ends before the first byte is out
// leaves the connection as it was; a message cut in two ends it.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	c.note(ctx, m)
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	data = append(data, '\n')

	select {
	case c.write <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
	defer func() { <-c.write }()

	// Errors of the deadline show as errors of the write.
	_ = c.wire.SetWriteDeadline(time.Now().Add(writeWait))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.wire.SetWriteDeadline(time.Unix(1, 0))
		close(ended)
	})
	n, err := c.wire.Write(data)
	if !stop() {
		<-ended // or it would cut the next write
	}
	switch {
	case err == nil:
		return nil
	case n == 0 && ctx.Err() != nil:
		return ctx.Err()
	case isTimeout(err):
		c.fail(errors.New("stopped reading its input"))
	default:
		// Its end says more than the broken pipe: the reader will meet it.
		c.settle()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return io.ErrClosedPipe
}

// settle gives the reader a moment to find out why nobody reads any more.
func (c *conn) settle() {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-c.eof:
	case <-t.C:
	}
	c.fail(errEnded)
}

var errEnded = errors.New("closed its input")

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// note keeps the books about a message that goes out.
func (c *conn) note(ctx context.Context, m jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Response:
		c.open--
	case *jsonrpc.Request:
		if !m.IsCall() {
			return
		}
		if want, ok := ctx.Value(captureKey{}).(*capture); ok {
			want.id = m.ID
			c.captures[m.ID] = want
		}
		if m.Method == "server/discover" && c.fault == nil {
			c.prober = time.AfterFunc(c.probe, func() { c.fail(errNoProbe) })
		}
	}
}

// forget drops a capture whose request has been given up, and returns what it
// got.
func (c *conn) forget(want *capture) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.captures, want.id)
	return want.result
}

func (c *conn) deliver(m jsonrpc.Message) {
	select {
	case c.in <- m:
	case <-c.closed:
	}
}

// read takes messages from the server until the wire ends.
func (c *conn) read() {
	defer close(c.eof)
	r := bufio.NewReaderSize(c.wire, 64<<10)
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > c.limit {
			c.fail(fmt.Errorf("sent a message of more than %d bytes and was stopped", c.limit))
			return
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			line = append(line, piece...)
			continue
		}
		if err != nil {
			c.fail(errGone)
			return
		}
		// What is decoded may point into the line, so its memory is not reused.
		whole := append(line, piece...)
		line = nil
		m, err := c.message(bytes.TrimSpace(whole))
		if err != nil {
			c.fail(err)
			return
		}
		if m != nil {
			c.deliver(m)
		}
	}
}

var errGone = errors.New("closed its output")

// message decodes one line. It returns nothing for what nobody handles, and an
// error when the server has gone too far.
func (c *conn) message(line []byte) (jsonrpc.Message, error) {
	if len(line) == 0 {
		return nil, nil
	}
	m, err := jsonrpc.DecodeMessage(line)
	c.mu.Lock()
	defer c.mu.Unlock()
	if line[0] != '{' || err != nil {
		if c.garbage++; c.garbage == 1 {
			c.sample = string(line[:min(len(line), 200)])
		}
		if c.garbage > maxGarbage {
			return nil, fmt.Errorf("printed %d lines to stdout that are no MCP messages and was stopped", c.garbage)
		}
		return nil, nil
	}
	switch m := m.(type) {
	case *jsonrpc.Response:
		if c.prober != nil {
			c.prober.Stop()
		}
		if want, ok := c.captures[m.ID]; ok {
			delete(c.captures, m.ID)
			if m.Error == nil {
				want.result = m.Result
				m.Result = json.RawMessage(want.stub)
			}
			return m, nil
		}
		// An answer to the SDK's own few requests, or late, or forged.
		if err := c.countUnasked(); err != nil {
			return nil, err
		}
	case *jsonrpc.Request:
		if m.IsCall() {
			if c.open++; c.open > maxOpen {
				return nil, fmt.Errorf("made %d requests of its own without waiting for an answer and was stopped", c.open)
			}
			return m, nil
		}
		if m.Method == "notifications/tools/list_changed" {
			c.stale.Store(true)
		}
		return nil, c.countUnasked()
	}
	return m, nil
}

// countUnasked counts a message that answers nothing we asked. c.mu is held.
func (c *conn) countUnasked() error {
	now := time.Now()
	c.unasked = max(0, c.unasked-now.Sub(c.leaked).Seconds()*unaskedRate) + 1
	c.leaked = now
	if c.unasked > maxUnasked {
		return fmt.Errorf("sent more than %d messages that nobody asked for and was stopped", maxUnasked)
	}
	return nil
}

// printed tells of lines that were no messages, for the operator.
func (c *conn) printed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.garbage == 0 {
		return ""
	}
	return fmt.Sprintf("it printed %d lines to stdout that are no MCP messages, the first %s", c.garbage, plain.Quote(c.sample))
}
