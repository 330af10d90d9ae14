package cases

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// raw plays through `belljar mcp`, a process of its own, and reads its stdout byte
// by byte: there must be one answer to each of our two requests, and nothing else.
type raw struct{ b *bench }

func (s raw) run(ctx context.Context, p *program) (*reply, error) {
	cmd := exec.CommandContext(ctx, s.b.binary, "mcp")
	cmd.Env, cmd.Dir = s.b.environ(), s.b.work
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	begin := time.Now()
	call := map[string]any{"jsonrpc": "2.0", "id": "the call", "method": "tools/call",
		"params": map[string]any{"name": "execute_code", "arguments": map[string]any{"code": p.source}}}
	err = json.NewEncoder(in).Encode(map[string]any{"jsonrpc": "2.0", "id": "hello", "method": "initialize",
		"params": map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "raw", "version": "1"}}})
	answers := map[string]json.RawMessage{}
	var all bytes.Buffer
	lines := bufio.NewReader(out)
	for err == nil {
		var line []byte
		if line, err = lines.ReadBytes('\n'); err != nil {
			break // the end, once stdin is closed
		}
		all.Write(line)
		var f frame
		if f, err = readFrame(line); err != nil {
			break
		}
		if _, twice := answers[f.ID]; twice || f.ID != "hello" && f.ID != "the call" {
			err = fmt.Errorf("a frame that nobody asked for: %.500s", line)
			break
		}
		answers[f.ID] = f.Result
		if f.ID == "hello" {
			_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			if err == nil {
				err = json.NewEncoder(in).Encode(call)
			}
		} else {
			err = in.Close()
		}
	}
	in.Close() // a second time is no harm
	if len(answers) < 2 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("%d answers, then %w\n%s%s", len(answers), err, &all, &stderr)
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		return nil, fmt.Errorf("the server ended with %v\n%s", err, &stderr)
	}
	var got mcp.CallToolResult
	if err := json.Unmarshal(answers["the call"], &got); err != nil {
		return nil, err
	}
	r, err := answered(&got, time.Since(begin))
	if err != nil {
		return nil, err
	}
	r.texts = append(r.texts, all.String())
	return r, nil
}

// frame is a successful answer of JSON-RPC.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      string          `json:"id"`
	Result  json.RawMessage `json:"result"`
}

func readFrame(line []byte) (frame, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	var f frame
	if err := dec.Decode(&f); err != nil {
		return f, fmt.Errorf("not an answer: %w: %.500s", err, line)
	}
	if f.Version != "2.0" || f.Result == nil || dec.More() {
		return f, fmt.Errorf("not an answer: %.500s", line)
	}
	return f, nil
}
