package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/belljar/belljar"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocol plays through MCP: execute_code, so the program is a script.
type protocol struct{ b *bench }

func (s protocol) run(ctx context.Context, p *program) (*reply, error) {
	ticket := s.b.desk.expect(p)
	args := map[string]any{"code": p.source, "lang": "python"}
	if p.stdin != "" {
		args["stdin"] = p.stdin
	}
	if p.limits.TimeoutMS != nil {
		args["timeout_s"] = float64(*p.limits.TimeoutMS) / 1000
	}
	var files []map[string]any
	for _, f := range p.files {
		files = append(files, map[string]any{"name": f.Name, "content": f.Content})
	}
	if files != nil {
		args["files"] = files
	}
	begin := time.Now()
	got, err := s.b.client.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: args, Meta: mcp.Meta{"belljar/session": ticket}})
	if err != nil {
		return nil, err
	}
	return answered(got, time.Since(begin))
}

// answered makes a reply of an answer to execute_code.
func answered(got *mcp.CallToolResult, took time.Duration) (*reply, error) {
	structured, err := json.Marshal(got.StructuredContent)
	if err != nil {
		return nil, err
	}
	r := &reply{took: took, texts: []string{string(structured)}}
	for _, content := range got.Content {
		text, ok := content.(*mcp.TextContent)
		if !ok || text.Text == "" {
			return nil, fmt.Errorf("content %#v", content)
		}
		r.texts = append(r.texts, text.Text)
	}
	if r.res, err = oneResult(structured); err != nil {
		return nil, err
	}
	if got.IsError == r.res.OK {
		return nil, fmt.Errorf("isError is %v, ok is %v", got.IsError, r.res.OK)
	}
	return r, nil
}

// desk stands between the server and the engine. It gives a run what no argument
// of execute_code can say (limits other than time, the mark, the harness's tools)
// and keeps what became of it.
type desk struct {
	runner interface {
		Run(context.Context, *belljar.Request, func(belljar.Event)) (*belljar.Result, error)
	}

	mu      sync.Mutex
	next    int
	waiting map[string]*program // by ticket
	made    []*belljar.Result   // of requests without a ticket
}

// expect announces a program; its request carries the ticket as its session.
func (d *desk) expect(p *program) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	ticket := fmt.Sprintf("ticket-%d", d.next)
	d.waiting[ticket] = p
	return ticket
}

func (d *desk) Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
	d.mu.Lock()
	p, ok := d.waiting[req.Session]
	delete(d.waiting, req.Session)
	d.mu.Unlock()
	own := *req
	if ok {
		given := p.request(belljar.KindScript)
		given.Limits.TimeoutMS = own.Limits.TimeoutMS
		own.Env, own.Tools, own.Limits = given.Env, given.Tools, given.Limits
	}
	res, err := d.runner.Run(ctx, &own, events)
	if !ok {
		d.mu.Lock()
		d.made = append(d.made, res)
		d.mu.Unlock()
	}
	return res, err
}
