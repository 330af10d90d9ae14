package mcpserver

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/policy"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Runner is what the server needs of an engine. The error is for faults that left
// no Result; a refusal may come either way. Run calls events, if it is not nil,
// from one goroutine at a time and never after it has returned.
type Runner interface {
	Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error)
}

// Options of a server. Runner is required.
type Options struct {
	Runner Runner
	// Tools gives the tools that a script may call, sorted by name, as they are
	// now. Nil: none. It is asked at each tools/list.
	Tools func(ctx context.Context) []belljar.Tool
	// Signature writes how a script calls a tool. Nil: the bare name.
	Signature func(belljar.Tool) string

	// Langs gives the names of the languages in which scripts can run, the default
	// first. Nil, or none: python. It is asked at each tools/list.
	Langs func(ctx context.Context) []string

	Timeout    time.Duration // of a script that asks for none; 0: 30 s
	MaxTimeout time.Duration // the most a script gets; 0: Timeout
	Chars      int           // budget of the text for the model; 0: package output's
	MaxCalls   int           // tool calls that one script can make; 0: package policy's default

	Version string       // of this program
	Log     *slog.Logger // nil: none
}

// Server offers execute_code.
type Server struct {
	opt      Options
	mcp      *mcp.Server
	stop     context.Context // done when Serve was told to end
	every    time.Duration   // least time between progress notifications
	farewell time.Duration   // see farewell
	shutdown context.CancelFunc
}

// New makes a server. It opens nothing.
func New(opt Options) *Server {
	if opt.Timeout <= 0 {
		opt.Timeout = 30 * time.Second
	}
	opt.MaxTimeout = max(opt.MaxTimeout, opt.Timeout)
	if opt.MaxCalls <= 0 {
		opt.MaxCalls = policy.DefaultMaxCalls
	}
	if opt.Tools == nil {
		opt.Tools = func(context.Context) []belljar.Tool { return nil }
	}
	if opt.Signature == nil {
		opt.Signature = func(t belljar.Tool) string { return t.Name }
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opt: opt, every: 250 * time.Millisecond, farewell: farewell}
	s.stop, s.shutdown = context.WithCancel(context.Background())
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "belljar", Title: "Belljar", Version: opt.Version},
		&mcp.ServerOptions{
			Logger: opt.Log,
			// No logging capability: logs go to stderr, and a client is not promised more.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		},
	)
	s.mcp.AddTool(s.tool(nil, nil), s.execute)
	s.mcp.AddReceivingMiddleware(s.describeLive)
	return s
}

// farewell is how long a client that has gone, or a server that was told to end,
// may take to read what is still to be said.
const farewell = 2 * time.Second

// Serve speaks with one client until the transport ends or ctx is done. Either
// way the runs of that client are cancelled, and they have ended when Serve
// returns, unless the client does not read: then Serve gives up on it after two
// seconds and leaves a goroutine to its blocked write, which only the end of the
// process, or of the client, can end. A server serves once.
func (s *Server) Serve(ctx context.Context, t mcp.Transport) error {
	// The SDK keeps handlers running when the context of a session ends; they are
	// ended through stop.
	release := context.AfterFunc(ctx, s.shutdown)
	defer release()
	defer s.shutdown()
	// The transport's end comes to us as well: the SDK waits for answers that
	// nobody may ever take.
	gone, noMore := context.WithCancel(ctx)
	defer noMore()
	served := make(chan error, 1)
	go func() { served <- s.mcp.Run(ctx, watched{t, noMore}) }()
	select {
	case err := <-served:
		return err
	case <-gone.Done():
	}
	late := time.NewTimer(s.farewell)
	defer late.Stop()
	select {
	case err := <-served:
		return err
	case <-late.C:
		s.opt.Log.Warn("the client does not read what it asked for; its answers are given up")
		return ctx.Err()
	}
}

// describeLive puts the description as of now into the answer to tools/list:
// upstream servers come and go while the session lasts.
func (s *Server) describeLive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return res, err
		}
		// The tools in the answer are the server's own; they are replaced, not changed.
		list.Tools = slices.Clone(list.Tools)
		for i, t := range list.Tools {
			if t.Name == toolName {
				var langs []string
				if s.opt.Langs != nil {
					langs = s.opt.Langs(ctx)
				}
				list.Tools[i] = s.tool(s.opt.Tools(ctx), langs)
			}
		}
		return list, nil
	}
}
