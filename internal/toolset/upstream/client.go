package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Config says how to run one server. Everything in it is final: nothing is
// expanded or looked up any more but the command in PATH.
type Config struct {
	Name    string
	Command string
	Args    []string
	Env     []string // all of it
	Dir     string   // empty: that of this process
	// Secrets are values that are blotted out in what the server's own words
	// are shown.
	Secrets []string

	StartTimeout time.Duration // 0: 30 s, for the process to start and answer
	CallTimeout  time.Duration // 0: 60 s, for one call, a start included
	MaxMessage   int           // 0: 16 MiB, of one message from the server
	ProbeTimeout time.Duration // 0: 10 s, for server/discover, which older servers may ignore; they are then started again
	Grace        time.Duration // 0: 1 s, between the steps of ending it
}

func (c Config) withDefaults() Config {
	if c.StartTimeout == 0 {
		c.StartTimeout = 30 * time.Second
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = 60 * time.Second
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = 16 << 20
	}
	if c.ProbeTimeout == 0 {
		c.ProbeTimeout = 10 * time.Second
	}
	if c.Grace == 0 {
		c.Grace = time.Second
	}
	return c
}

// A Client is one configured server, running or not. It is safe for concurrent
// use.
type Client struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sess     *session
	starting chan struct{} // closed when the start under way has ended
	legacy   bool          // the server was met with the older greeting
	failures int           // starts that failed, or lives that were short, in a row
	retryAt  time.Time     // not started again before
	last     error         // why it is not running
}

// New makes a Client and starts nothing.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg.withDefaults()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends the server and waits until it and all goroutines are gone.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	s := c.sess
	c.mu.Unlock()
	if s != nil {
		s.conn.fail(errClosed)
	}
	c.cancel()
	c.wg.Wait()
}

// State says whether the server is running, and if it is not, why; a nil error
// means that nothing has needed it yet.
func (c *Client) State() (running bool, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sess != nil, c.last
}

// Stale reports that the list of tools should be asked for again: the server
// said so since the last List.
func (c *Client) Stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sess != nil && c.sess.conn.stale.Load()
}

// session returns the running server, starting it when there is none. Callers
// that come meanwhile wait for the same start; it goes on when they give up.
func (c *Client) session(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		switch {
		case c.closed:
			c.mu.Unlock()
			return nil, &Failure{Server: c.cfg.Name, What: "has been closed"}
		case c.sess != nil:
			s := c.sess
			c.mu.Unlock()
			select {
			case <-s.conn.closed:
			default:
				return s, nil
			}
			select {
			case <-s.dead: // then there is a new start, or a reason against it
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case c.starting == nil && time.Now().Before(c.retryAt):
			err := c.last
			c.mu.Unlock()
			return nil, err
		case c.starting == nil:
			c.starting = make(chan struct{})
			c.wg.Go(c.start)
		}
		wait := c.starting
		c.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		c.mu.Lock()
		failed := c.sess == nil && c.starting == nil && time.Now().Before(c.retryAt)
		err := c.last
		c.mu.Unlock()
		if failed {
			return nil, err
		}
	}
}

func (c *Client) start() {
	c.mu.Lock()
	legacy := c.legacy
	c.mu.Unlock()
	s, err := openSession(c.ctx, c.cfg, legacy)
	if errors.Is(err, errNoProbe) {
		legacy = true
		s, err = openSession(c.ctx, c.cfg, legacy)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.starting)
	c.starting = nil
	if err != nil {
		c.failures++
		c.last = err
		c.retryAt = time.Now().Add(pause(c.failures))
		return
	}
	c.sess, c.last, c.legacy = s, nil, legacy
	born := time.Now()
	if c.closed {
		s.conn.fail(errClosed)
	}
	c.wg.Go(func() {
		s.tend(c.ctx)
		c.buried(s, time.Since(born))
	})
}

// buried notes the end of a server. One that lived for a while is started again
// at once when it is next needed; one that keeps dying young has to wait.
func (c *Client) buried(s *session, age time.Duration) {
	defer close(s.dead)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sess = nil
	c.last = s.failure()
	if age > 10*time.Second {
		c.failures = 0
		return
	}
	c.failures++
	if c.failures > freeDeaths {
		c.retryAt = time.Now().Add(pause(c.failures - freeDeaths))
	}
}

// freeDeaths is how many short lives in a row are answered by a new start at once.
const freeDeaths = 3

// pause is 1, 2, 4 ... 60 seconds.
func pause(failures int) time.Duration {
	return min(time.Minute, time.Second<<min(failures-1, 6))
}

var errSlow = errors.New("no answer in time")

// Call calls one tool by the name the server gave it. Errors are
// *belljar.ToolError without the tool's name.
func (c *Client) Call(ctx context.Context, name string, args json.RawMessage) (belljar.Value, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.CallTimeout, errSlow)
	defer cancel()
	s, err := c.session(ctx)
	if err != nil {
		return belljar.Value{}, c.callError(ctx, nil, err)
	}
	raw, err := s.capture(ctx, callStub, func(ctx context.Context) error {
		_, err := s.mcp.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
		return err
	})
	if err != nil {
		return belljar.Value{}, c.callError(ctx, s, err)
	}
	return unwrap(raw)
}

// callError puts an error of the protocol, the process or the clock into words
// for a script. What the server wrote to stderr is for the operator alone.
func (c *Client) callError(ctx context.Context, s *session, err error) error {
	var fail *Failure
	var refused *jsonrpc.Error
	server := "MCP server " + plain.Quote(c.cfg.Name)
	switch {
	case errors.As(err, &fail):
		return &belljar.ToolError{Code: "failed", Reason: fail.Public()}
	case errors.As(err, &refused):
		return &belljar.ToolError{Code: "failed", Reason: server + " refused the call: " + plain.Clean(refused.Message, maxReason)}
	case errors.Is(context.Cause(ctx), errSlow):
		return &belljar.ToolError{Code: "timeout", Reason: fmt.Sprintf("%s did not answer within %v", server, c.cfg.CallTimeout)}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &belljar.ToolError{Code: "timeout", Reason: server + " did not answer before the run's time was up"}
	case ctx.Err() != nil:
		return &belljar.ToolError{Code: "cancelled", Reason: "the call was cancelled"}
	}
	if s != nil && s.ended(ctx) {
		return &belljar.ToolError{Code: "failed", Reason: s.failure().Public()}
	}
	return &belljar.ToolError{Code: "failed", Reason: server + " could not be called: " + plain.Line(err.Error(), 300)}
}

// Failure is why a server is not running.
type Failure struct {
	Server string
	What   string // completes "MCP server 'x' ..."
	Tail   string // what it wrote last, made fit to show; may be empty
}

// Error is for the operator.
func (f *Failure) Error() string {
	s := f.Public()
	if f.Tail != "" {
		s += "; " + f.Tail
	}
	return s
}

// Public is for a script: without the server's own words, which may hold
// credentials.
func (f *Failure) Public() string {
	return "MCP server " + plain.Quote(f.Server) + " " + f.What
}
