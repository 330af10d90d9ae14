package mcpserver

import (
	"context"
	"errors"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/output"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errStopping is the cause of cancelled runs when the server ends.
var errStopping = errors.New("the server is stopping")

// execute answers one call of execute_code. Whatever happens is an answer.
func (s *Server) execute(ctx context.Context, call *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	client := ""
	if info := call.ClientInfo(); info != nil {
		client = info.Name
	}
	req, wrong := request(call.Params, client)
	if wrong != nil {
		return s.answer(refused(wrong)), nil
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	release := context.AfterFunc(s.stop, func() { cancel(errStopping) })
	defer release()

	var events func(belljar.Event)
	if token := call.Params.GetProgressToken(); token != nil {
		p := newProgress(s.every, func(done int64, text string) {
			err := call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(done), Message: text})
			if err != nil && ctx.Err() == nil {
				s.opt.Log.Warn("progress notification", "error", err)
			}
		})
		defer p.close()
		events = p.event
	}
	res, err := s.opt.Runner.Run(ctx, req, events)
	return s.answer(s.ending(res, err)), nil
}

// ending makes a Result of whatever a Runner gave.
func (s *Server) ending(res *belljar.Result, err error) *belljar.Result {
	var refusal *belljar.Refusal
	switch {
	case errors.As(err, &refusal):
		return refused(refusal)
	case err != nil:
		s.opt.Log.Error("run", "error", err)
		return failed("the run could not be made; the server's log says why")
	case res == nil:
		s.opt.Log.Error("run", "error", "neither result nor error")
		return failed("the engine gave no answer")
	}
	return res
}

func (s *Server) answer(res *belljar.Result) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: output.Script(res, output.Options{Chars: s.opt.Chars})}},
		StructuredContent: res,
		IsError:           !res.OK,
	}
}

// refused is the Result of a call that never became a run.
func refused(r *belljar.Refusal) *belljar.Result {
	res := ended(belljar.StatusRefused, r.Error())
	res.Refusal = r
	return res
}

func failed(what string) *belljar.Result {
	return ended(belljar.StatusFailed, "execute_code harness failed: "+what)
}

func ended(status belljar.Status, why string) *belljar.Result {
	return &belljar.Result{
		Status: status, Stage: belljar.StageAdmission, Kind: belljar.KindScript, Error: &why,
		Isolation: belljar.Isolation{Protections: []string{}, Missing: []belljar.Missing{}},
		Denials:   []belljar.Denial{}, Findings: []belljar.Finding{}, Artifacts: []belljar.Artifact{},
		ToolCalls: belljar.ToolCalls{Calls: []belljar.ToolCall{}},
	}
}
