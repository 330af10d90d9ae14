package upstream

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// A process is a running server. Its goroutine holds one operating system thread
// for as long as the server lives: the parent-death signal is tied to the thread
// that started the child, and would kill it when Go ends that thread.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File // our end
	stdout *os.File // our end
	stderr *tail
	done   chan struct{} // closed when the leader has been reaped
	err    error         // how it ended; valid after done

	mu     sync.Mutex
	reaped bool // the process id may belong to someone else now
}

// stderrTail is how much of what a server wrote last is kept, in bytes.
const stderrTail = 2048

func startProcess(cfg Config) (*process, error) {
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close()
		stdin.Close()
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	p := &process{stdin: stdin, stdout: stdout, stderr: &tail{max: stderrTail}, done: make(chan struct{})}
	p.cmd = exec.Command(cfg.Command, cfg.Args...)
	p.cmd.Env = cfg.Env
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would hand over our whole environment
	}
	p.cmd.Dir = cfg.Dir
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, p.stderr
	p.cmd.SysProcAttr = processAttr()
	// A grandchild that holds stderr open must not keep the leader from being
	// reaped.
	p.cmd.WaitDelay = time.Second

	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		childIn.Close()
		childOut.Close()
		started <- err
		if err != nil {
			return
		}
		p.wait()
	}()
	if err := <-started; err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}
	return p, nil
}

// wait reaps the leader, and kills what is left of its group while the group's
// number cannot yet belong to anyone else.
func (p *process) wait() {
	ended := awaitExit(p.cmd.Process.Pid)
	if ended {
		p.mu.Lock()
		killGroup(p.cmd.Process)
		p.reaped = true
		p.mu.Unlock()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if p.cmd.ProcessState != nil {
		p.err = fmt.Errorf("%s", p.cmd.ProcessState)
	} else {
		p.err = err
	}
	close(p.done)
}

func (p *process) signal(send func(*os.Process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		send(p.cmd.Process)
	}
}

// stop ends the server as MCP asks for: its stdin ends, then it is told to
// terminate, then it is killed; each with a grace between.
func (p *process) stop(grace time.Duration) {
	p.stdin.Close()
	for _, next := range []func(*os.Process){terminateGroup, killGroup} {
		t := time.NewTimer(grace)
		select {
		case <-p.done:
			t.Stop()
			p.stdout.Close()
			return
		case <-t.C:
		}
		p.signal(next)
	}
	<-p.done
	p.stdout.Close()
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	max int
	buf []byte
}

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if len(b) > t.max {
		b = b[len(b)-t.max:]
	}
	t.buf = append(t.buf, b...)
	if extra := len(t.buf) - t.max; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
