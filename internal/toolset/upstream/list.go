package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/belljar/belljar/internal/toolset/plain"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what one server may offer.
const (
	maxTools       = 1000
	maxPages       = 100
	maxSchema      = 64 << 10
	maxDescription = 4 << 10
)

// A Tool is a tool as its server describes it: the name as it came, the
// description cleaned and cut, the schemas as they were written or nil where they
// are missing or larger than 64 KiB.
type Tool struct {
	Name         string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
}

// List asks the server for its tools, starting it when needed. problems are
// tools, or parts of them, that had to be left out; err means no list at all.
func (c *Client) List(ctx context.Context) (tools []Tool, problems []error, err error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, nil, c.listError(ctx, nil, err)
	}
	problem := func(format string, a ...any) {
		if len(problems) < 20 {
			problems = append(problems, fmt.Errorf("MCP server "+plain.Quote(c.cfg.Name)+": "+format, a...))
		}
	}
	// Cleared first: a change while the list is read makes it stale again.
	s.conn.stale.Store(false)
	limit, cancel := context.WithTimeout(ctx, c.cfg.StartTimeout)
	defer cancel()
	cursor := ""
	for range maxPages {
		raw, err := s.capture(limit, listStub, func(ctx context.Context) error {
			_, err := s.mcp.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			return err
		})
		var refused *jsonrpc.Error
		if errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound {
			return nil, nil, nil // a server of prompts or resources only
		}
		if err != nil {
			return nil, nil, c.listError(limit, s, err)
		}
		if !utf8.Valid(raw) {
			raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
		}
		var page struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if json.Unmarshal(raw, &page) != nil {
			return nil, nil, &Failure{Server: c.cfg.Name, What: "answered with what is no list of tools"}
		}
		for _, one := range page.Tools {
			if len(tools) == maxTools {
				problem("more than %d tools; the rest is left out", maxTools)
				return tools, problems, nil
			}
			t, err := readTool(one)
			if err != nil {
				problem("%w", err)
				if t.Name == "" {
					continue
				}
			}
			tools = append(tools, t)
		}
		if page.Next == "" || page.Next == cursor {
			return tools, problems, nil
		}
		cursor = page.Next
	}
	problem("its list of tools has no end; what came after %d pages is left out", maxPages)
	return tools, problems, nil
}

// readTool reads one tool. With an error and a name, the tool is usable but a
// part of it is missing.
func readTool(raw json.RawMessage) (Tool, error) {
	var t struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
	}
	if json.Unmarshal(raw, &t) != nil || t.Name == "" {
		return Tool{}, errors.New("a malformed tool is left out")
	}
	if t.Description == "" {
		t.Description = t.Title
	}
	out := Tool{Name: t.Name, Description: plain.Clean(t.Description, maxDescription), InputSchema: t.Input, OutputSchema: t.Output}
	var err error
	for _, s := range []*json.RawMessage{&out.InputSchema, &out.OutputSchema} {
		if len(*s) > maxSchema {
			*s = nil
			err = fmt.Errorf("a schema of the tool %s is larger than %d bytes and left out", plain.Quote(t.Name), maxSchema)
		} else if string(*s) == "null" {
			*s = nil
		}
	}
	return out, err
}

func (c *Client) listError(ctx context.Context, s *session, err error) error {
	var fail *Failure
	switch {
	case errors.As(err, &fail):
		return fail
	case ctx.Err() != nil:
		return &Failure{Server: c.cfg.Name, What: "did not list its tools in time"}
	case s != nil && s.ended(ctx):
		return s.failure()
	}
	return &Failure{Server: c.cfg.Name, What: "did not list its tools: " + plain.Line(err.Error(), 300)}
}
