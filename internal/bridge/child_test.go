package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belljar/belljar"
)

// tools is a fake toolset.
type tools struct {
	calls atomic.Int64
}

func (f *tools) Call(ctx context.Context, tool string, args json.RawMessage) (belljar.Value, error) {
	f.calls.Add(1)
	var a struct {
		Text    json.RawMessage
		Bytes   int
		Seconds float64
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return belljar.Value{}, &belljar.ToolError{Tool: tool, Code: "failed", Reason: err.Error()}
	}
	switch tool {
	case "echo": // gives back what text is, as text or JSON
		if s := ""; len(a.Text) > 0 && a.Text[0] == '"' {
			err := json.Unmarshal(a.Text, &s)
			return belljar.Value{Data: []byte(s)}, err
		}
		return belljar.Value{Kind: belljar.ValueJSON, Data: a.Text}, nil
	case "args":
		return belljar.Value{Kind: belljar.ValueJSON, Data: args}, nil
	case "big":
		return belljar.Value{Data: []byte(strings.Repeat("y", a.Bytes))}, nil
	case "blob":
		return belljar.Value{Kind: belljar.ValueBytes, Data: []byte{0, 255, 10, 0}}, nil
	case "slow":
		select {
		case <-time.After(time.Duration(a.Seconds * float64(time.Second))):
			return belljar.Value{Data: []byte("slept")}, nil
		case <-ctx.Done():
			return belljar.Value{}, context.Cause(ctx)
		}
	case "fail":
		return belljar.Value{}, &belljar.ToolError{Tool: tool, Code: "failed", Reason: "it broke"}
	case "forbidden":
		return belljar.Value{}, &belljar.ToolError{Tool: tool, Denied: true, Code: "disabled",
			Reason: "Blocked by policy: Tool 'forbidden' is disabled by policy."}
	case "fault":
		return belljar.Value{}, fmt.Errorf("a secret inside")
	case "panic":
		panic("a secret inside")
	case "notjson":
		return belljar.Value{Kind: belljar.ValueJSON, Data: []byte("{")}, nil
	}
	return belljar.Value{}, &belljar.ToolError{Tool: tool, Code: "unknown_tool", Reason: fmt.Sprintf("tool '%s' not available", tool)}
}

// interpreter finds a python that is no shim of a version manager.
func interpreter(t testing.TB) string {
	t.Helper()
	for _, dir := range append([]string{"/usr/bin"}, filepath.SplitList(os.Getenv("PATH"))...) {
		if strings.Contains(dir, "shims") {
			continue
		}
		if p, err := exec.LookPath(filepath.Join(dir, "python3")); err == nil {
			return p
		}
	}
	t.Fatal("python3 is needed for these tests: install it")
	return ""
}

// start runs source as main.py with the bridge as descriptor 3.
func start(t testing.TB, b *Bridge, source string, args ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.py"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	client, err := filepath.Abs("../../languages/python")
	if err != nil {
		t.Fatal(err)
	}
	python := os.Getenv("BELLJAR_TEST_PYTHON")
	if python == "" {
		python = interpreter(t)
	}
	cmd := exec.Command(python, append([]string{"main.py"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LC_ALL=C.UTF-8", "PYTHONPATH=" + client, "PYTHONDONTWRITEBYTECODE=1"}
	cmd.ExtraFiles = []*os.File{b.ChildFile()}
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// script runs source to its end and returns what it printed, and the bridge's account.
func script(t testing.TB, h Handler, cfg Config, source string, args ...string) (string, Stats) {
	t.Helper()
	b, err := Open(context.Background(), cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	cmd, out := start(t, b, source, args...)
	timer := time.AfterFunc(time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	err = cmd.Wait()
	stats := b.Close()
	if err != nil {
		t.Fatalf("script: %v\n%s", err, out)
	}
	return out.String(), stats
}
