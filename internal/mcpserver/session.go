package mcpserver

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// watched is a transport whose end is noticed, and by which no request gets an
// answer that the client has cancelled: the protocol has none for it.
type watched struct {
	mcp.Transport
	ended func() // called when nothing more comes from the client
}

func (w watched) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := w.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &session{Connection: c, ended: w.ended, open: map[jsonrpc.ID]bool{}}, nil
}

type session struct {
	mcp.Connection
	ended func()

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // requests without an answer yet; true: cancelled
}

func (s *session) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := s.Connection.Read(ctx)
	if err != nil {
		s.ended()
		return nil, err
	}
	if req, ok := msg.(*jsonrpc.Request); ok {
		s.note(req)
	}
	return msg, nil
}

// note keeps what a request means for the answers.
func (s *session) note(req *jsonrpc.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.IsCall() {
		s.open[req.ID] = false
		return
	}
	if req.Method != "notifications/cancelled" {
		return
	}
	var params struct {
		ID any `json:"requestId"`
	}
	if json.Unmarshal(req.Params, &params) != nil {
		return
	}
	id, err := jsonrpc.MakeID(params.ID)
	if err != nil {
		return
	}
	if _, ok := s.open[id]; ok {
		s.open[id] = true
	}
}

func (s *session) Write(ctx context.Context, msg jsonrpc.Message) error {
	if res, ok := msg.(*jsonrpc.Response); ok {
		s.mu.Lock()
		cancelled := s.open[res.ID]
		delete(s.open, res.ID)
		s.mu.Unlock()
		if cancelled {
			return nil
		}
	}
	return s.Connection.Write(ctx, msg)
}
