package initproc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of record, as in spawner.c.
const (
	kindSpawned = 1 + iota
	kindReaped
	kindRefused
	kindFailed
	kindStarted
	kindExited
	kindReady
)

const (
	recordSize  = 48
	requestSize = 168
	killMessage = 0x6c6c696b
)

// record is what the spawner and PID 1 report.
type record struct {
	kind   uint32
	a      int32
	b      int64
	user   time.Duration
	sys    time.Duration
	maxRSS int64 // bytes
	faults int64
}

func parseRecord(b []byte) record {
	ne := binary.NativeEndian
	us := func(off int) time.Duration { return time.Duration(ne.Uint64(b[off:])) * time.Microsecond }
	return record{
		kind: ne.Uint32(b), a: int32(ne.Uint32(b[4:])), b: int64(ne.Uint64(b[8:])),
		user: us(16), sys: us(24), maxRSS: int64(ne.Uint64(b[32:])) * 1024, faults: int64(ne.Uint64(b[40:])),
	}
}

// Spawner is one running spawner program. It serves one run at a time.
type Spawner struct {
	cmd  *exec.Cmd
	ctl  *os.File
	done chan struct{} // closed when the program has ended

	mu      sync.Mutex
	current *Process
	err     error // why no further process can be made
}

// Start runs a spawner and lets it walk a first table, by which it moves into
// the root that its runs share (nil: it stays where it is). It lives until Close,
// or until the engine dies. A call of the table that failed is a [*StepError].
func Start(root *Table) (*Spawner, error) {
	bin, err := spawnerFile()
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the spawner's control socket: %w", err)
	}
	unix.SetNonblock(pair[0], true)
	ctl := os.NewFile(uintptr(pair[0]), "spawner control")
	theirs := os.NewFile(uintptr(pair[1]), "spawner control, far end")
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: bin, Args: []string{"belljar-spawner"}, Env: []string{}, Dir: "/", Stdin: theirs,
		// A session of its own: signals meant for the engine's terminal must not
		// reach a run, and a run's must not reach the engine.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		ctl.Close()
		return nil, fmt.Errorf("start the spawner: %w", err)
	}
	s := &Spawner{cmd: cmd, ctl: ctl, done: make(chan struct{})}
	go s.listen()
	if root == nil {
		return s, nil
	}
	if err := s.Walk(root); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Walk lets the spawner itself walk a table, between runs: what it changes about
// itself, its next children inherit. A call that failed is a [*StepError], and
// then the spawner has ended.
func (s *Spawner) Walk(t *Table) error {
	table, size, err := t.memfd()
	if err != nil {
		return err
	}
	defer unix.Close(table)
	p := &Process{s: s, table: t, spawned: make(chan spawnResult, 2), reaped: make(chan struct{})}
	s.mu.Lock()
	s.current = p
	s.mu.Unlock()
	if err := s.send(message(&Request{}, size, []int{table}, 0, -1, -1), []int{table}); err != nil {
		return err
	}
	res := <-p.spawned
	return res.err
}

// spawnerFile puts the program into memory once and names it for exec.
var spawnerFile = sync.OnceValues(func() (string, error) {
	fd, err := Memfd("belljar-spawner", spawnerBinary, true)
	if err != nil {
		return "", err
	}
	return "/proc/self/fd/" + strconv.Itoa(fd), nil
})

// PID of the spawner on the host: the member of a slot's control group that stays.
func (s *Spawner) PID() int { return s.cmd.Process.Pid }

// Close ends the spawner and, with it, its run; it waits until both are gone.
func (s *Spawner) Close() error {
	s.ctl.Close()
	<-s.done
	return nil
}

// Healthy says whether a further process can be made.
func (s *Spawner) Healthy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil
}

// listen owns the reading side of the control socket and the program's end.
func (s *Spawner) listen() {
	var buf [64]byte
	var err error
	for {
		var n int
		n, err = s.ctl.Read(buf[:])
		if err == nil && n != recordSize {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			break
		}
		s.deliver(parseRecord(buf[:n]))
	}
	s.ctl.Close()
	werr := s.cmd.Wait()
	s.mu.Lock()
	s.err = fmt.Errorf("the spawner ended: %w", errors.Join(err, werr))
	p := s.current
	s.current = nil
	s.mu.Unlock()
	if p != nil {
		p.spawned <- spawnResult{err: s.err}
		close(p.reaped)
	}
	close(s.done)
}

func (s *Spawner) deliver(r record) {
	s.mu.Lock()
	p := s.current
	if r.kind != kindSpawned {
		s.current = nil
	}
	s.mu.Unlock()
	if p == nil {
		return
	}
	switch r.kind {
	case kindSpawned:
		p.spawned <- spawnResult{pid: int(r.a)}
	case kindReady:
		p.spawned <- spawnResult{}
	case kindFailed: // of the spawner's own table
		p.spawned <- spawnResult{err: &StepError{Step: p.table.Name(int(r.a)), Errno: syscall.Errno(r.b)}}
		close(p.reaped)
	case kindRefused:
		p.spawned <- spawnResult{err: &StepError{Step: "clone", Errno: syscall.Errno(r.b)}}
		close(p.reaped)
	case kindReaped:
		p.total = r.user + r.sys
		close(p.reaped)
	}
}

// Request describes a process to be made.
type Request struct {
	Table *Table
	// FDs become descriptors 0, 1, 2 ... of the child, closed on exec unless the
	// table says otherwise. They stay open here.
	FDs []int
	// CloneFlags are the namespaces to be made by clone itself.
	CloneFlags uint64
	// CgroupFD is a version 2 control group to be born in, or -1.
	CgroupFD int
	// UIDMap and GIDMap are written when the table reaches Maps.
	UIDMap, GIDMap string
	DenySetgroups  bool
}

// Spawn makes one process. It returns once the process exists; what became of it
// comes from [Process.Next].
func (s *Spawner) Spawn(r *Request) (*Process, error) {
	table, size, err := r.Table.memfd()
	if err != nil {
		return nil, err
	}
	defer unix.Close(table)
	status, theirs, err := Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the status pipe: %w", err)
	}
	defer unix.Close(theirs)

	fds := append(slices.Clone(r.FDs), table, theirs)
	tableFD, statusFD, cgroupFD := len(fds)-2, len(fds)-1, -1
	if r.CgroupFD >= 0 {
		fds = append(fds, r.CgroupFD)
		cgroupFD = len(fds) - 1
	}

	if len(r.UIDMap) > mapSize || len(r.GIDMap) > mapSize {
		status.Close()
		return nil, errors.New("an id map is longer than 63 characters")
	}
	msg := message(r, size, fds, tableFD, statusFD, cgroupFD)
	p := &Process{s: s, table: r.Table, status: status, spawned: make(chan spawnResult, 2), reaped: make(chan struct{})}
	s.mu.Lock()
	if s.err == nil && s.current != nil {
		err = errors.New("the spawner is busy")
	} else if s.err != nil {
		err = s.err
	} else {
		s.current = p
	}
	s.mu.Unlock()
	if err == nil {
		err = s.send(msg, fds)
	}
	if err != nil {
		s.mu.Lock()
		if s.current == p {
			s.current = nil
		}
		s.mu.Unlock()
		status.Close()
		return nil, err
	}
	res := <-p.spawned
	if res.err != nil {
		status.Close()
		return nil, res.err
	}
	p.PID = res.pid
	return p, nil
}

// mapSize is how long an id map may be.
const mapSize = 63

// message lays a request out as spawner.c reads it.
func message(r *Request, size int64, fds []int, table, status, cgroup int) []byte {
	msg := make([]byte, requestSize)
	ne := binary.NativeEndian
	ne.PutUint32(msg[0:], tableMagic)
	ne.PutUint32(msg[4:], uint32(len(fds)))
	ne.PutUint64(msg[8:], r.CloneFlags)
	ne.PutUint64(msg[16:], uint64(size))
	ne.PutUint32(msg[24:], uint32(int32(table)))
	ne.PutUint32(msg[28:], uint32(int32(status)))
	ne.PutUint32(msg[32:], uint32(int32(cgroup)))
	if r.DenySetgroups {
		ne.PutUint32(msg[36:], 1)
	}
	copy(msg[40:40+mapSize], r.UIDMap)
	copy(msg[104:104+mapSize], r.GIDMap)
	return msg
}

func (s *Spawner) send(msg []byte, fds []int) error {
	raw, err := s.ctl.SyscallConn()
	if err != nil {
		return fmt.Errorf("reach the spawner: %w", err)
	}
	var oob []byte
	if fds != nil {
		oob = unix.UnixRights(fds...)
	}
	var serr error
	err = raw.Write(func(fd uintptr) bool {
		serr = unix.Sendmsg(int(fd), msg, oob, nil, unix.MSG_NOSIGNAL)
		return serr != unix.EAGAIN
	})
	if err = errors.Join(err, serr); err != nil {
		return fmt.Errorf("reach the spawner: %w", err)
	}
	return nil
}

// Pipe makes a pipe for the output of a child: a read end for Go's poller and a
// blocking write end to be handed over, both closed on exec.
func Pipe() (r *os.File, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, err
	}
	// The two ends are separate open files, so only ours becomes non-blocking.
	if err := unix.SetNonblock(p[0], true); err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return nil, -1, err
	}
	return os.NewFile(uintptr(p[0]), "pipe"), p[1], nil
}
