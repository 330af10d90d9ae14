package mcpserver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/testkit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect serves one in-memory client.
func connect(t *testing.T, opt Options, copt *mcp.ClientOptions) (*mcp.ClientSession, *Server) {
	t.Helper()
	s := New(opt)
	here, there := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, there) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "a client", Version: "1"}, copt)
	cs, err := client.Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		cancel()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("serve: %v", err)
		}
	})
	return cs, s
}

func call(t *testing.T, cs *mcp.ClientSession, params *mcp.CallToolParams) (*mcp.CallToolResult, string) {
	t.Helper()
	params.Name = toolName
	res, err := cs.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%d contents", len(res.Content))
	}
	return res, res.Content[0].(*mcp.TextContent).Text
}

func code(source string) map[string]any { return map[string]any{"code": source} }

func TestListDescribesLiveTools(t *testing.T) {
	testkit.LeakCheck(t)
	var mu sync.Mutex
	var tools []belljar.Tool
	cs, _ := connect(t, Options{Runner: newEngine(), Signature: signature, Tools: func(context.Context) []belljar.Tool {
		mu.Lock()
		defer mu.Unlock()
		return tools
	}}, nil)
	for _, n := range []int{0, 3} {
		mu.Lock()
		tools = someTools(n)
		mu.Unlock()
		list, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) != 1 || list.Tools[0].Name != toolName {
			t.Fatalf("tools %v", list.Tools)
		}
		text := list.Tools[0].Description
		if strings.Contains(text, "(none)") != (n == 0) || strings.Contains(text, "tool_02(x: int = 1) -> str  # Does thing 2.") != (n == 3) {
			t.Errorf("with %d tools:\n%s", n, text)
		}
		if list.Tools[0].OutputSchema != nil {
			t.Error("an output schema is promised")
		}
	}
}

func TestCalls(t *testing.T) {
	testkit.LeakCheck(t)
	e := newEngine()
	cs, _ := connect(t, Options{Runner: e}, nil)
	tests := []struct {
		name   string
		args   any
		text   string
		fails  bool
		status string
	}{
		{"output", code("print hello"), "hello", false, "exited"},
		{"a failing program is an answer", code("exit ValueError"), "Error: script exited with code 3.\nTraceback: ValueError", false, "exited"},
		{"fault", code("fault"), "Error: execute_code harness failed: the run could not be made", true, "failed"},
		{"no answer", code("nothing"), "Error: execute_code harness failed: the engine gave no answer", true, "failed"},
		{"refusal", code("refuse"), "Error: all slots are taken.\nCall again in a moment.", true, "refused"},
		{"empty", code(""), "Error: execute_code called with empty code.", true, "refused"},
		{"no arguments", nil, "Error: execute_code called with empty code.", true, "refused"},
		{"wrong type", map[string]any{"code": "x", "lang": 5}, "Error: execute_code: lang must be a string, not a number.\n", true, "refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, text := call(t, cs, &mcp.CallToolParams{Arguments: tt.args})
			if !strings.HasPrefix(text, tt.text) {
				t.Errorf("text %q, want %q", text, tt.text)
			}
			if strings.Contains(text, "/secret") {
				t.Error("the inner text of a fault shows")
			}
			out := res.StructuredContent.(map[string]any)
			if res.IsError != tt.fails || out["ok"] != !tt.fails || out["status"] != tt.status {
				t.Errorf("isError %v, ok %v, status %v", res.IsError, out["ok"], out["status"])
			}
			for _, list := range []string{"denials", "findings", "artifacts"} {
				if _, ok := out[list].([]any); !ok {
					t.Errorf("%s is %v, not an array", list, out[list])
				}
			}
		})
	}
}

func TestMetaAndCaller(t *testing.T) {
	e := newEngine()
	cs, _ := connect(t, Options{Runner: e}, nil)
	call(t, cs, &mcp.CallToolParams{Arguments: code("print x"), Meta: mcp.Meta{metaSession: "s1", metaFence: []any{"read_file"}}})
	req := e.last()
	if req.Caller != "mcp:a_client" || req.Session != "s1" || len(req.Fence) != 1 || req.Kind != belljar.KindScript {
		t.Errorf("request %+v", req)
	}
	before := e.runs()
	res, text := call(t, cs, &mcp.CallToolParams{Arguments: code("print x"), Meta: mcp.Meta{metaFence: "read_file"}})
	if !res.IsError || !strings.Contains(text, "belljar/fence must be an array") || e.runs() != before {
		t.Errorf("a fence that is none: %q, %d runs", text, e.runs()-before)
	}
}

func TestCancelledCallEndsItsRunOnly(t *testing.T) {
	testkit.LeakCheck(t)
	e := newEngine()
	cs, _ := connect(t, Options{Runner: e}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: toolName, Arguments: code("block")})
		done <- err
	}()
	<-e.started
	if _, text := call(t, cs, &mcp.CallToolParams{Arguments: code("print beside")}); text != "beside" {
		t.Errorf("a call beside a running one: %q", text)
	}
	cancel()
	<-e.cancelled
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
	if _, text := call(t, cs, &mcp.CallToolParams{Arguments: code("print after")}); text != "after" {
		t.Errorf("the next call: %q", text)
	}
}

func TestEndOfTheServerEndsRuns(t *testing.T) {
	testkit.LeakCheck(t)
	e := newEngine()
	s := New(Options{Runner: e})
	here, there := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, there) }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	called := make(chan struct{})
	go func() {
		defer close(called)
		_, _ = cs.CallTool(context.Background(), &mcp.CallToolParams{Name: toolName, Arguments: code("block")}) // its answer may be lost with the session
	}()
	<-e.started
	cancel()
	if cause := <-e.cancelled; !errors.Is(cause, errStopping) {
		t.Errorf("cause %v", cause)
	}
	<-served
	cs.Close()
	<-called
}

func TestProgress(t *testing.T) {
	testkit.LeakCheck(t)
	var mu sync.Mutex
	var got []mcp.ProgressNotificationParams
	copt := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, *r.Params)
	}}
	cs, s := connect(t, Options{Runner: newEngine()}, copt)
	s.every = 1
	params := &mcp.CallToolParams{Arguments: code("stream")}
	params.SetProgressToken("tok")
	if _, text := call(t, cs, params); text != "streamed" {
		t.Errorf("answer %q", text)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) == 0 {
		t.Fatal("no notification")
	}
	last := 0.0
	for _, n := range got {
		if n.ProgressToken != "tok" || n.Progress <= last || n.Message == "" || strings.Contains(n.Message, "\ufffd") {
			t.Errorf("notification %+v after %v", n, last)
		}
		last = n.Progress
	}
}
