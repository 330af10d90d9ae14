package initproc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// StepError is a system call of the set-up that the kernel refused.
type StepError struct {
	Step  string
	Errno syscall.Errno
}

func (e *StepError) Error() string { return fmt.Sprintf("%s: %v", e.Step, e.Errno) }
func (e *StepError) Unwrap() error { return e.Errno }

type spawnResult struct {
	pid int
	err error
}

// Process is one run's PID 1 and the program under it.
type Process struct {
	// PID is that of PID 1 as the host sees it. It may be reused once Reaped is closed.
	PID int

	s       *Spawner
	table   *Table
	status  *os.File
	spawned chan spawnResult
	reaped  chan struct{}
	total   time.Duration // written before reaped is closed
}

// Status is one report of a process.
type Status struct {
	Started bool // the program's execve succeeded; otherwise it has ended
	Wait    syscall.WaitStatus
	User    time.Duration // of the program and those of its children it waited for
	System  time.Duration
	MaxRSS  int64 // bytes, of the largest single process
	// NoSpace and NoInodes say that the run's file system was full at the end.
	NoSpace, NoInodes bool
	Faults            int64 // minor page faults, those of setting the sandbox up included
}

// ErrGone says that PID 1 ended without a word: it was killed.
var ErrGone = errors.New("the run's first process was killed")

// Next waits for the next report: first that the program started, then that it
// ended. A set-up that failed is a [*StepError]; ErrGone means killed. Call it
// from one goroutine.
func (p *Process) Next() (Status, error) {
	var buf [recordSize]byte
	if _, err := io.ReadFull(p.status, buf[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) {
			return Status{}, ErrGone
		}
		return Status{}, fmt.Errorf("read the status pipe: %w", err)
	}
	r := parseRecord(buf[:])
	switch r.kind {
	case kindStarted:
		return Status{Started: true}, nil
	case kindExited:
		return Status{Wait: syscall.WaitStatus(r.a), User: r.user, System: r.sys, MaxRSS: r.maxRSS,
			NoSpace: r.b&1 != 0, NoInodes: r.b&2 != 0, Faults: r.faults}, nil
	case kindFailed:
		return Status{}, &StepError{Step: p.table.Name(int(r.a)), Errno: syscall.Errno(r.b)}
	}
	return Status{}, fmt.Errorf("unknown report %d on the status pipe", r.kind)
}

// Kill ends every process of the run. It is harmless after the end.
func (p *Process) Kill() {
	select {
	case <-p.reaped:
		return
	default:
	}
	var msg [4]byte
	binary.NativeEndian.PutUint32(msg[:], killMessage)
	// An error means that the spawner is gone, and the run with it.
	_ = p.s.send(msg[:], nil)
}

// Total is the processor time of all processes of the run. It is known once Reaped
// is closed; 0 before, and when the spawner died.
func (p *Process) Total() time.Duration {
	select {
	case <-p.reaped:
		return p.total
	default:
		return 0
	}
}

// Reaped is closed when no process of the run is left.
func (p *Process) Reaped() <-chan struct{} { return p.reaped }

// Close frees the status pipe. It ends nothing.
func (p *Process) Close() { p.status.Close() }
