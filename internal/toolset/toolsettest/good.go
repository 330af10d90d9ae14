package toolsettest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const modeVar = "TOOLSETTEST_MODE"

// Env is the environment that makes the test binary the server of that mode.
func Env(mode string) map[string]string { return map[string]string{modeVar: mode} }

// Main becomes a server when the environment says so, and otherwise returns.
func Main() {
	mode := os.Getenv(modeVar)
	if mode == "" {
		return
	}
	if err := serve(mode); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(mode string) error {
	switch mode {
	case "good":
		s := mcp.NewServer(&mcp.Implementation{Name: "good", Version: "1"}, nil)
		addGood(s)
		return s.Run(context.Background(), &mcp.StdioTransport{})
	case "clash":
		s := mcp.NewServer(&mcp.Implementation{Name: "clash", Version: "1"}, nil)
		for _, name := range []string{"read_file", "text", "own"} {
			add(s, name, `{"type":"object"}`, func(json.RawMessage) (*mcp.CallToolResult, error) { return text("clash " + name), nil })
		}
		return s.Run(context.Background(), &mcp.StdioTransport{})
	}
	if f, ok := bad[mode]; ok {
		return f()
	}
	return errors.New("no such mode: " + mode)
}

func text(parts ...string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{Content: []mcp.Content{}}
	for _, p := range parts {
		r.Content = append(r.Content, &mcp.TextContent{Text: p})
	}
	return r
}

func add(s *mcp.Server, name, schema string, call func(args json.RawMessage) (*mcp.CallToolResult, error)) {
	s.AddTool(&mcp.Tool{Name: name, Description: "The tool " + name + ".", InputSchema: json.RawMessage(schema)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(r.Params.Arguments)
		})
}

// addGood adds the tools. Those named after a kind of answer give it.
func addGood(s *mcp.Server) {
	const none = `{"type":"object"}`
	fixed := func(name string, r *mcp.CallToolResult) {
		add(s, name, none, func(json.RawMessage) (*mcp.CallToolResult, error) { return r, nil })
	}
	structured := func(name, doc string) {
		fixed(name, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: doc}}, StructuredContent: json.RawMessage(doc)})
	}
	png := []byte("\x89PNG\r\n")
	image := &mcp.ImageContent{Data: png, MIMEType: "image/png"}
	blob := &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", MIMEType: "application/x-b", Blob: []byte{0, 1}}}
	size := int64(7)
	link := &mcp.ResourceLink{URI: "file:///l", Name: "l", MIMEType: "text/plain", Size: &size}

	fixed("text", text("hello"))
	fixed("texts", text("one", "two", ""))
	fixed("empty", text())
	structured("structured", `{"b":1,"a":[true,null],"n":12345678901234567890}`)
	structured("result-key", `{"result":[1,2]}`)
	structured("content.key", `{"content":"just text"}`)
	structured("list", `[1,"x"]`)
	fixed("image", &mcp.CallToolResult{Content: []mcp.Content{image}})
	fixed("audio", &mcp.CallToolResult{Content: []mcp.Content{&mcp.AudioContent{Data: png, MIMEType: "audio/wav"}}})
	fixed("blob", &mcp.CallToolResult{Content: []mcp.Content{blob}})
	fixed("embedded", &mcp.CallToolResult{Content: []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///t", Text: "inside"}}}})
	fixed("link", &mcp.CallToolResult{Content: []mcp.Content{link}})
	fixed("mixed", &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a <plot>"}, image, link, blob}})
	fixed("fails", &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such \x1b[31mcity"}}})
	fixed("fails_silently", &mcp.CallToolResult{IsError: true, Content: []mcp.Content{}})
	fixed("import", text("a keyword"))
	add(s, "refuses", none, func(json.RawMessage) (*mcp.CallToolResult, error) { return nil, errors.New("not today") })
	add(s, "echo", `{"type":"object","required":["q"],"properties":{"zeta":{"type":"integer","default":3},"q":{"type":"string"},"alpha":{"type":"boolean"}}}`,
		func(args json.RawMessage) (*mcp.CallToolResult, error) { return text(string(args)), nil })
	add(s, "env", none, func(json.RawMessage) (*mcp.CallToolResult, error) {
		env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, modeVar) })
		slices.Sort(env)
		dir, err := os.Getwd()
		return text(strings.Join(env, "\n") + "\ncwd=" + dir), err
	})
	add(s, "pid", none, func(json.RawMessage) (*mcp.CallToolResult, error) { return text(strconv.Itoa(os.Getpid())), nil })
	add(s, "child", none, func(json.RawMessage) (*mcp.CallToolResult, error) {
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			return nil, err
		}
		return text(strconv.Itoa(c.Process.Pid)), nil
	})
	add(s, "slow", none, func(json.RawMessage) (*mcp.CallToolResult, error) {
		time.Sleep(10 * time.Minute)
		return text("too late"), nil
	})
	add(s, "die", none, func(json.RawMessage) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "fatal: token "+os.Getenv("TOKEN")+" \x1b[31mexpired")
		os.Exit(7)
		return nil, nil
	})
	add(s, "large", `{"type":"object","required":["bytes"],"properties":{"bytes":{"type":"integer"}}}`, func(args json.RawMessage) (*mcp.CallToolResult, error) {
		var a struct{ Bytes int }
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, err
		}
		return text(strings.Repeat("x", a.Bytes)), nil
	})
	add(s, "more", none, func(json.RawMessage) (*mcp.CallToolResult, error) {
		add(s, "later", none, func(json.RawMessage) (*mcp.CallToolResult, error) { return text("here"), nil })
		return text("added"), nil
	})
}
