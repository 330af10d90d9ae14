package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/belljar/belljar/internal/testkit"
)

// TestSignals ends a run by each signal that asks for it: the exit code says so,
// and the run is in the journal.
func TestSignals(t *testing.T) {
	testkit.Need(t, "userns", "python")
	testkit.LeakCheck(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			_, env := workspace(t)
			cmd := exec.Command("belljar", "run", "-l", "python", "-")
			cmd.Env, cmd.Stdin = env, strings.NewReader("import time\nprint('up', flush=True)\ntime.sleep(25)")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			// Where these tests run under nohup, a command would inherit that.
			caught := make(chan os.Signal, 1)
			signal.Notify(caught, sig)
			err = cmd.Start()
			signal.Stop(caught)
			if err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its exit code is looked at
			if code := cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit code %d", code)
			}
			list := exec.Command("belljar", "audit", "list")
			list.Env = env
			if text, err := list.Output(); err != nil || !bytes.Contains(text, []byte("cancelled")) {
				t.Errorf("the journal: %v\n%s", err, text)
			}
		})
	}
}

// TestMCPClientDoesNotRead leaves a large answer in the pipe: the server ends by
// the end of stdin and by a signal, and has recorded what it ran.
func TestMCPClientDoesNotRead(t *testing.T) {
	testkit.Need(t, "userns", "python")
	testkit.LeakCheck(t)
	for _, sig := range []syscall.Signal{0, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			dir, env := workspace(t)
			cmd := exec.Command("belljar", "mcp", "--workspace", dir)
			cmd.Env = env
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{
				"name": "execute_code", "arguments": map[string]any{"code": "print('x' * 500_000)"}}})
			if err != nil {
				t.Fatal(err)
			}
			first := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
			if _, err := io.WriteString(in, first+"\n"+string(call)+"\n"); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReaderSize(out, 16)
			if _, err := r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Peek(1); err != nil { // the answer has begun
				t.Fatal(err)
			}
			if sig != 0 {
				err = cmd.Process.Signal(sig)
			} else {
				err = in.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			state, err := cmd.Process.Wait() // exec.Cmd's would close the pipe
			if err != nil || state.ExitCode() != 0 {
				t.Errorf("%v, %v", state, err)
			}
			if err := out.Close(); err != nil {
				t.Error(err)
			}
			list := exec.Command("belljar", "audit", "list")
			list.Env = env
			if text, err := list.Output(); err != nil || !bytes.Contains(text, []byte("execute_code")) {
				t.Errorf("the journal: %v\n%s", err, text)
			}
		})
	}
}
