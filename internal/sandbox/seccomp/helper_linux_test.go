package seccomp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The tests of the real kernel run in this test binary, started again with
// helperEnv set: a filter cannot be taken off, so a process of its own wears it.
const helperEnv = "BELLJAR_SECCOMP_HELPER"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "probe":
		err = helperProbe()
	case "exec":
		err = helperExec(os.Args[1:])
	case "go":
		err = helperGo()
	default:
		err = fmt.Errorf("unknown helper %q", os.Getenv(helperEnv))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(99)
	}
	os.Exit(0)
}

// install puts the filter for this machine on every thread of the process, as
// the init program puts it on the only thread of its own.
func install() error {
	f, err := Compile(runtime.GOARCH, Default)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	code := f.Bytes()
	prog := unix.SockFprog{Len: uint16(f.Len()), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(code)
	if errno != 0 {
		return fmt.Errorf("install filter (this kernel may lack seccomp): %w", errno)
	}
	return nil
}

// helper starts this binary in a mode, with arguments, and returns its streams.
func helper(t *testing.T, mode string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), helperEnv+"="+mode)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// underFilter runs a program under the filter and requires that it ends well.
func underFilter(t *testing.T, argv ...string) string {
	t.Helper()
	stdout, stderr, err := helper(t, "exec", argv...)
	if err != nil {
		t.Fatalf("%s under the filter: %v\nstdout: %s\nstderr: %s", argv[0], err, stdout, stderr)
	}
	return strings.TrimSpace(stdout)
}

func helperExec(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if err := os.Unsetenv(helperEnv); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := install(); err != nil {
		return err
	}
	return fmt.Errorf("execute %s: %w", path, unix.Exec(path, argv, os.Environ()))
}

// probeResult is what the kernel answered to one probe, 0 for success.
type probeResult struct {
	Bare     unix.Errno // without the filter; only where that is harmless
	Filtered unix.Errno
}

// helperProbe makes every probe without the filter, where it is marked so, and
// then with it.
func helperProbe() error {
	runtime.LockOSThread()
	results := make([]probeResult, len(probes))
	for i, p := range probes {
		if p.bare != 0 {
			results[i].Bare = p.call()
		}
	}
	if err := install(); err != nil {
		return err
	}
	for i, p := range probes {
		results[i].Filtered = p.call()
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}
