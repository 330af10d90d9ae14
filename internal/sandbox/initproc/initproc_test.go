package initproc

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// plain runs argv without any isolation: only the mechanics of the table.
func plain(t *testing.T, s *Spawner, argv ...string) (string, Status, error) {
	t.Helper()
	r, w, err := Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var tab Table
	tab.Call("arm the parent-death signal", 0, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uint64(unix.SIGKILL))
	tab.Alive()
	tab.Fork()
	for fd := range uint64(3) {
		tab.Call("keep a stream open", 0, unix.SYS_FCNTL, fd, unix.F_SETFD, 0)
	}
	tab.Call("execve", 0, unix.SYS_EXECVE, tab.String(argv[0]), tab.Strings(argv), tab.Strings([]string{"A=b"}))
	p, err := s.Spawn(&Request{Table: &tab, FDs: []int{null, w, w}, CgroupFD: -1})
	unix.Close(w)
	unix.Close(null)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	st, err := p.Next()
	if err != nil {
		<-p.Reaped()
		return "", st, err
	}
	out, _ := io.ReadAll(r)
	st, err = p.Next()
	<-p.Reaped()
	return string(out), st, err
}

func TestPlain(t *testing.T) {
	s, err := Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, st, err := plain(t, s, "/bin/sh", "-c", "echo $A; kill -TERM $$")
	if err != nil || out != "b\n" || !st.Wait.Signaled() || st.Wait.Signal() != syscall.SIGTERM {
		t.Fatalf("%q %v %v", out, st.Wait, err)
	}
	_, _, err = plain(t, s, "/nowhere")
	var step *StepError
	if !errors.As(err, &step) || step.Step != "execve" || step.Errno != unix.ENOENT {
		t.Fatalf("%v", err)
	}
	for range 100 {
		if out, st, err = plain(t, s, "/bin/true"); err != nil || out != "" || st.Wait.ExitStatus() != 0 {
			t.Fatalf("%q %v %v", out, st, err)
		}
	}
}
