package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belljar/belljar/internal/testkit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// workspace is a folder with a file in it, and the environment of a user whose
// home is empty.
func workspace(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("alpha\nbeta\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	return dir, append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "BELLJAR_STATE_DIR=")
}

// server starts `belljar mcp` as a client does.
func server(t *testing.T, copt *mcp.ClientOptions, args ...string) *mcp.ClientSession {
	t.Helper()
	dir, env := workspace(t)
	cmd := exec.Command("belljar", append([]string{"mcp", "--workspace", dir}, args...)...)
	cmd.Env = env
	var log bytes.Buffer
	cmd.Stderr = &log
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, copt)
	cs, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	t.Cleanup(func() {
		if err := cs.Close(); err != nil {
			t.Errorf("the server did not end well: %v\n%s", err, &log)
		}
		if log.Len() > 0 {
			t.Errorf("stderr: %s", &log)
		}
	})
	return cs
}

func execute(ctx context.Context, t *testing.T, cs *mcp.ClientSession, meta mcp.Meta, args map[string]any) (*mcp.CallToolResult, string) {
	t.Helper()
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: args, Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	return res, res.Content[0].(*mcp.TextContent).Text
}

func TestMCP(t *testing.T) {
	testkit.Need(t, "userns", "python")
	testkit.LeakCheck(t)
	cs := server(t, nil)
	tests := []struct {
		name  string
		meta  mcp.Meta
		args  map[string]any
		want  string
		fails bool
	}{
		{"output", nil, map[string]any{"code": "print(6 * 7)"}, "42", false},
		{"nothing printed", nil, map[string]any{"code": "x = 1"}, "(script produced no stdout)", false},
		{"a tool", nil, map[string]any{"code": `print(tools.read_file(path="a.txt").upper())`}, "ALPHA\nBETA", false},
		{"an exception", nil, map[string]any{"code": "1/0"}, "Error: script exited with code 1.\nTraceback (most recent call last):", false},
		{"time", nil, map[string]any{"code": "while True: pass", "timeout_s": 1.5}, "Error: execute_code timed out after 1.5s (process killed).", true},
		{"stdin and files", nil, map[string]any{"code": "print(input(), open('d/f').read())", "stdin": "in\n", "files": []map[string]any{{"name": "d/f", "content": "file"}}}, "in file", false},
		{"empty", nil, map[string]any{"code": ""}, "Error: execute_code called with empty code.", true},
		{"a fence", mcp.Meta{"belljar/fence": []any{"list_dir"}}, map[string]any{"code": `tools.read_file(path="a.txt")`}, "Error: script exited with code 1.\n", false},
		{"protocol in the output", nil, map[string]any{"code": `print('{"jsonrpc":"2.0","id":1,"result":{}}')`}, `{"jsonrpc":"2.0","id":1,"result":{}}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, text := execute(t.Context(), t, cs, tt.meta, tt.args)
			if !strings.HasPrefix(text, tt.want) || res.IsError != tt.fails {
				t.Errorf("isError %v, text %q, want %q", res.IsError, text, tt.want)
			}
			if out, ok := res.StructuredContent.(map[string]any); !ok || out["ok"] != !tt.fails {
				t.Errorf("structured content %v", res.StructuredContent)
			}
		})
	}
}

// word gives an argument by which a test finds the processes of its own run. The
// test's own arguments must not hold it.
func processesWith(word string) (pids []string) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, file := range lines {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(word)) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// lingering is a script whose child process carries word in its arguments.
func lingering(word string) map[string]any {
	return map[string]any{"code": "import subprocess, sys\n" +
		"subprocess.run([sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(60)', '" + word + "'])"}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestMCPCancelled(t *testing.T) {
	testkit.Need(t, "userns", "python")
	testkit.LeakCheck(t)
	const word = "belljar-e2e-cancelled"
	cs := server(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: lingering(word)}) // it is cancelled
	}()
	waitFor(t, "the run's process", func() bool { return len(processesWith(word)) > 0 })
	cancel()
	<-done
	waitFor(t, "the end of the run's processes", func() bool { return len(processesWith(word)) == 0 })
	if _, text := execute(t.Context(), t, cs, nil, map[string]any{"code": "print('still here')"}); text != "still here" {
		t.Errorf("the next call: %q", text)
	}
}

func TestMCPStdinCloses(t *testing.T) {
	testkit.Need(t, "userns", "python")
	testkit.LeakCheck(t)
	const word = "belljar-e2e-closed"
	dir, env := workspace(t)
	cmd := exec.CommandContext(t.Context(), "belljar", "mcp", "--workspace", dir)
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": "execute_code", "arguments": lingering(word)}})
	if err != nil {
		t.Fatal(err)
	}
	first := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	if _, err := in.Write([]byte(first + "\n" + string(call) + "\n")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the run's process", func() bool { return len(processesWith(word)) > 0 })
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &log)
	}
	waitFor(t, "the end of the run's processes", func() bool { return len(processesWith(word)) == 0 })
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("on stdout: %q", line)
		}
	}
}

func TestMCPProgress(t *testing.T) {
	testkit.Need(t, "userns", "python")
	got := make(chan *mcp.ProgressNotificationParams, 100)
	cs := server(t, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		select {
		case got <- r.Params:
		default: // more than anybody looks at
		}
	}})
	params := &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": "print('first', flush=True)\nimport time\ntime.sleep(1)\nprint('last')"}}
	params.SetProgressToken("p")
	if _, err := cs.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	select {
	case p := <-got:
		if p.ProgressToken != "p" || !strings.Contains(p.Message, "first") {
			t.Errorf("%+v", p)
		}
	case <-time.After(10 * time.Second):
		t.Error("no progress")
	}
}

// TestInspector lets another implementation of the protocol, the MCP Inspector's
// command line, talk to `belljar mcp`.
func TestInspector(t *testing.T) {
	testkit.Need(t, "userns", "python", "inspector")
	dir, env := workspace(t)
	belljar, err := exec.LookPath("belljar")
	if err != nil {
		t.Fatal(err)
	}
	inspect := func(args ...string) map[string]any {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, testkit.PeerBin("mcp-inspector"), append([]string{"--cli", belljar, "mcp", "--workspace", dir}, args...)...)
		cmd.Env = env
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s%s", err, out, &log)
		}
		var doc map[string]any
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return doc
	}

	list := inspect("--method", "tools/list")["tools"].([]any)
	if len(list) != 1 {
		t.Fatalf("%d tools", len(list))
	}
	tool := list[0].(map[string]any)
	if tool["name"] != "execute_code" || !strings.Contains(tool["description"].(string), "read_file(path: str") {
		t.Errorf("%v", tool)
	}
	res := inspect("--method", "tools/call", "--tool-name", "execute_code", "--tool-arg", `code=print(len(tools.read_file(path="a.txt")))`)
	content := res["content"].([]any)[0].(map[string]any)
	if content["text"] != "11" || res["isError"] == true {
		t.Errorf("%v", res)
	}
	out := res["structuredContent"].(map[string]any)
	if out["status"] != "exited" || out["tool_calls"].(map[string]any)["count"] != 1.0 {
		t.Errorf("%v", out)
	}
}
