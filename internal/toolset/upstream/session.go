package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belljar/belljar/internal/toolset/plain"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A session is one life of a server.
type session struct {
	cfg  Config
	proc *process
	conn *conn
	mcp  *mcp.ClientSession
	dead chan struct{} // closed when all is over and the Client knows it
	why  error         // why the handshake failed, where conn does not know better
}

// pipes are the server's stdin and stdout as one wire.
type pipes struct{ p *process }

func (w pipes) Read(b []byte) (int, error)         { return w.p.stdout.Read(b) }
func (w pipes) Write(b []byte) (int, error)        { return w.p.stdin.Write(b) }
func (w pipes) SetWriteDeadline(t time.Time) error { return w.p.stdin.SetWriteDeadline(t) }

func (w pipes) Close() error { return errors.Join(w.p.stdin.Close(), w.p.stdout.Close()) }

var errStartSlow = errors.New("did not finish the MCP handshake in time")

// legacyVersion is the newest protocol that begins with initialize.
const legacyVersion = "2025-11-25"

// openSession starts the server and greets it: with server/discover, or when
// legacy is set as older servers know it. A server that keeps silent on
// server/discover has to be started afresh for the older greeting, for it may
// only be slow, and would get both.
func openSession(ctx context.Context, cfg Config, legacy bool) (*session, error) {
	proc, err := startProcess(cfg)
	if err != nil {
		return nil, &Failure{Server: cfg.Name, What: "could not be started: " + plain.Line(err.Error(), 300)}
	}
	s := &session{cfg: cfg, proc: proc, conn: newConn(pipes{proc}, cfg.MaxMessage, cfg.ProbeTimeout), dead: make(chan struct{})}

	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	// The SDK waits for a writer that is stuck whatever the context says, so the
	// connection is closed under it.
	stop := context.AfterFunc(ctx, func() { s.conn.fail(errStartSlow) })
	client := mcp.NewClient(&mcp.Implementation{Name: "belljar", Title: "Belljar", Version: "1"}, &mcp.ClientOptions{
		// We offer a server nothing: no roots, no sampling, no questions.
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		// Set so that newer servers tell of changes at all; conn notes them.
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
	})
	var opts mcp.ClientSessionOptions
	if legacy {
		opts.ProtocolVersion = legacyVersion
	}
	s.mcp, err = client.Connect(ctx, s.conn, &opts)
	if err == nil && stop() {
		return s, nil
	}
	stop()
	// The SDK closes the connection when the handshake fails, so that the cause
	// kept there may say no more than that.
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		s.why = errStartSlow
	case ctx.Err() == nil && err != nil:
		s.why = fmt.Errorf("did not finish the MCP handshake: %s", plain.Line(err.Error(), 300))
	}
	s.conn.fail(errClosed)
	s.bury()
	if errors.Is(s.conn.cause(), errNoProbe) {
		return nil, errNoProbe
	}
	return nil, s.failure()
}

// tend waits for the end of the server or of ctx and clears up after it.
func (s *session) tend(ctx context.Context) {
	select {
	case <-s.conn.closed:
	case <-s.proc.done:
		// What it said last may still be in the pipe.
		t := time.NewTimer(s.cfg.Grace)
		select {
		case <-s.conn.eof:
		case <-t.C:
		}
		t.Stop()
		s.conn.fail(errGone)
	case <-ctx.Done():
		s.conn.fail(errClosed)
	}
	s.bury()
}

// bury ends the process, which has been cut off, and waits for what served it.
func (s *session) bury() {
	grace := s.cfg.Grace
	if cause := s.conn.cause(); !errors.Is(cause, errClosed) && !errors.Is(cause, errGone) && !errors.Is(cause, errEnded) {
		grace = 0 // it has misbehaved
	}
	s.proc.stop(grace)
	if s.mcp != nil {
		_ = s.mcp.Close() // there is nobody left to be polite to
	}
	<-s.conn.eof
}

// ended waits for the end of a session whose connection has been closed, so that
// the cause is known; it reports false when the connection is open.
func (s *session) ended(ctx context.Context) bool {
	select {
	case <-s.conn.closed:
	default:
		return false
	}
	select {
	case <-s.dead:
		return true
	case <-ctx.Done():
		return false
	}
}

// failure says why the session ended. It is to be called after its end.
func (s *session) failure() *Failure {
	f := &Failure{Server: s.cfg.Name}
	cause := s.conn.cause()
	if s.why != nil && errors.Is(cause, errClosed) {
		cause = s.why
	}
	switch {
	case cause == nil || errors.Is(cause, errGone) || errors.Is(cause, errEnded):
		f.What = fmt.Sprintf("ended by itself (%v)", s.proc.err)
	case errors.Is(cause, errStartSlow):
		f.What = fmt.Sprintf("did not finish the MCP handshake within %v", s.cfg.StartTimeout)
	default:
		f.What = cause.Error()
	}
	var words []string
	if p := s.conn.printed(); p != "" {
		words = append(words, p)
	}
	if t := strings.TrimSpace(s.proc.stderr.String()); t != "" {
		words = append(words, "its last words: "+plain.Line(t[max(0, len(t)-500):], 500))
	}
	f.Tail = s.blot(strings.Join(words, "; "))
	return f
}

// blot takes configured values out of a server's words.
func (s *session) blot(text string) string {
	for _, secret := range s.cfg.Secrets {
		if len(secret) >= 6 {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}

// capture runs one SDK call and returns the raw result that went past it.
func (s *session) capture(ctx context.Context, stub string, call func(context.Context) error) (json.RawMessage, error) {
	want := &capture{stub: stub}
	err := call(context.WithValue(ctx, captureKey{}, want))
	raw := s.conn.forget(want)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, errors.New("the answer has no result")
	}
	return raw, nil
}
