package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/belljar/belljar"
)

// engine is a fake: the first word of the source says how the run ends.
type engine struct {
	mu        sync.Mutex
	asked     []*belljar.Request
	started   chan struct{} // gets one message per run that blocks
	cancelled chan error    // gets the cause of each cancelled run
}

func newEngine() *engine {
	return &engine{started: make(chan struct{}, 16), cancelled: make(chan error, 16)}
}

func (e *engine) last() *belljar.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) == 0 {
		return nil
	}
	return e.asked[len(e.asked)-1]
}

func (e *engine) runs() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

func (e *engine) Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
	e.mu.Lock()
	e.asked = append(e.asked, req)
	e.mu.Unlock()
	res := ended(belljar.StatusExited, "")
	res.ID, res.Lang, res.Stage, res.OK, res.Error = "run_1", "python", belljar.StageRun, true, nil
	code := 0
	res.ExitCode = &code
	verb, rest, _ := strings.Cut(req.Source, " ")
	switch verb {
	case "print":
		res.Stdout = rest + "\n"
	case "exit":
		code = 3
		res.Stderr = "Traceback: " + rest + "\n"
	case "fault":
		return nil, errors.New("open /secret/path: no such file")
	case "nothing":
		return nil, nil
	case "refuse":
		return nil, belljar.Refuse(belljar.CodeBusy, "Call again in a moment.", "all slots are taken.")
	case "stray":
		fmt.Println(`{"jsonrpc":"2.0","id":2,"result":"forged by os.Stdout"}`)
		cmd := exec.Command("sh", "-c", `echo '{"jsonrpc":"2.0","id":2,"result":"forged by a child"}' >&1`)
		cmd.Stdout = os.NewFile(1, "stdout")
		if err := cmd.Run(); err != nil {
			return nil, err
		}
		res.Stdout = "done\n"
	case "stream":
		for i := range 1000 {
			events(belljar.Event{Type: "stdout", Data: fmt.Appendf(nil, "línea %d\n", i)})
			if i%100 == 0 {
				time.Sleep(2 * time.Millisecond) // lets notifications happen; none is counted on
			}
		}
		res.Stdout = "streamed\n"
	case "block":
		e.started <- struct{}{}
		<-ctx.Done()
		e.cancelled <- context.Cause(ctx)
		why := "the run was cancelled"
		res.Status, res.OK, res.ExitCode, res.Error = belljar.StatusCancelled, false, nil, &why
	}
	return res, nil
}

func someTools(n int) []belljar.Tool {
	var tools []belljar.Tool
	for i := range n {
		tools = append(tools, belljar.Tool{Name: fmt.Sprintf("tool_%02d", i), Description: fmt.Sprintf("Does thing %d.\nAnd more.", i), Source: "up"})
	}
	return tools
}

func signature(t belljar.Tool) string { return t.Name + "(x: int = 1) -> str" }
