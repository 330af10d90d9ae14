//go:build linux

package cgroup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belljar/belljar"
)

// The test binary is its own helper program: what it does is in BELLJAR_HELPER.
func TestMain(m *testing.M) {
	switch os.Getenv("BELLJAR_HELPER") {
	case "":
		os.Exit(m.Run())
	case "warden":
		helperWarden()
	case "both":
		helperBoth()
	case "owner":
		helperOwner()
	case "user":
		helperUser()
	}
}

// quickExit takes away the second that a race-detecting program sleeps at exit.
const quickExit = "GORACE=atexit_sleep_ms=0"

// helperWarden starts a shell that runs one line after the other, tells its
// process id, and waits for whatever that leaves behind, as the init process of
// a run does. The first process of a container may never wait.
func helperWarden() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	sh := exec.Command("/bin/sh", "-c", `while IFS= read -r line; do (eval "$line") </dev/null; echo "done $?"; done`)
	sh.Stdin, sh.Stdout = os.Stdin, os.Stdout
	if err := sh.Start(); err != nil {
		panic(err)
	}
	fmt.Println(sh.Process.Pid)
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err == unix.ECHILD {
			return
		}
	}
}

// helperBoth waits for a line, makes a child in the version 2 group that is its
// descriptor 3, and tells its id and how it ended.
func helperBoth() {
	var line string
	if _, err := fmt.Scanln(&line); err != nil {
		panic(err)
	}
	sleep := exec.Command("sleep", "60")
	sleep.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: 3}
	if err := sleep.Start(); err != nil {
		panic(err)
	}
	fmt.Println(sleep.Process.Pid)
	fmt.Println(sleep.Wait())
}

// helperOwner makes a slot with a process in it, says so, and waits to be killed.
func helperOwner() {
	m, err := Open(Config{Parent: os.Getenv("BELLJAR_PARENT")})
	if err != nil {
		panic(err)
	}
	s, err := m.NewSlot()
	if err != nil {
		panic(err)
	}
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		panic(err)
	}
	if err := s.Enter(sleep.Process.Pid); err != nil {
		panic(err)
	}
	fmt.Println(sleep.Process.Pid)
	io.Copy(io.Discard, os.Stdin) // until the test is gone, at the latest
}

// userReport is what helperUser found as an ordinary user.
type userReport struct {
	UID     int
	Version int
	Missing []belljar.Missing
	Checks  []belljar.Check
	FD      int
	Stats   Stats
	Idle    bool
	Errors  []string
}

func helperUser() {
	json.NewEncoder(os.Stdout).Encode(useAll(Config{Parent: os.Getenv("BELLJAR_PARENT")}))
}

// useAll goes through a whole life of manager and slot.
func useAll(cfg Config) userReport {
	r := userReport{UID: os.Getuid()}
	note := func(step string, err error) {
		if err != nil {
			r.Errors = append(r.Errors, step+": "+err.Error())
		}
	}
	m, err := Open(cfg)
	note("open", err)
	if err != nil {
		return r
	}
	r.Version, r.Missing, r.Checks = m.Version(), m.Missing(), m.Checks()
	_, err = m.Sweep(context.Background())
	note("sweep", err)
	s, err := m.NewSlot()
	note("new slot", err)
	if err == nil {
		r.FD = s.FD()
		sleep := exec.Command("sleep", "60")
		note("start", sleep.Start())
		defer func() {
			sleep.Process.Kill()
			sleep.Wait()
		}()
		note("enter", s.Enter(sleep.Process.Pid))
		note("arm", s.Arm(Limits{MemoryBytes: 1 << 26, Processes: 8}))
		r.Stats, err = s.Stats()
		note("stats", err)
		note("kill", s.Kill())
		r.Idle, err = s.Idle(context.Background())
		note("idle", err)
		note("close slot", s.Close())
	}
	note("close", m.Close())
	return r
}
