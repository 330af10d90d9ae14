package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/belljar/belljar"
)

// defaults are limits under which ordinary programs run.
func defaults() belljar.Limits {
	return belljar.Limits{TimeoutMS: 20_000, MemoryBytes: 512 << 20, Processes: 64, DiskBytes: 64 << 20, Inodes: 10_000, OutputBytes: 16 << 20, OpenFiles: 1024}
}

// outcome is what a test looks at.
type outcome struct {
	*Exit
	out, err string
}

// python runs a Python program given as text.
func python(t testing.TB, h *Host, source string, change ...func(*Spec)) outcome {
	t.Helper()
	exe, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, h, append([]func(*Spec){func(s *Spec) {
		s.Argv = []string{exe, "main.py"}
		s.Files = []File{{Name: "main.py", Data: []byte(source)}}
	}}, change...)...)
}

// shell runs a line of shell.
func shell(t testing.TB, h *Host, line string, change ...func(*Spec)) outcome {
	t.Helper()
	return start(t, h, append([]func(*Spec){func(s *Spec) { s.Argv = []string{"/bin/sh", "-c", line} }}, change...)...)
}

func start(t testing.TB, h *Host, change ...func(*Spec)) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	s := &Spec{
		Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace", "PWD=/workspace", "TMPDIR=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8"},
		Limits: defaults(), Stdout: &out, Stderr: &errs,
	}
	for _, c := range change {
		c(s)
	}
	exit, err := h.Run(context.Background(), s)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return outcome{exit, out.String(), errs.String()}
}

func open(t testing.TB) *Host {
	t.Helper()
	h, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return h
}

func TestHello(t *testing.T) {
	h := open(t)
	o := python(t, h, "import os,sys\nprint('hello', os.getpid(), os.getuid(), os.getcwd(), os.listdir('.'), os.listdir('/'), os.listdir('/dev'))\nsys.exit(7)\n")
	t.Logf("%s\n%s\n%+v", o.out, o.err, o.Exit)
	o = shell(t, h, "cat /proc/self/status /proc/self/mountinfo; ls -la / /dev /etc /workspace /tmp /proc/1 ; id; ls /opt; kill -9 $$")
	t.Logf("%s\n%s\n%+v", o.out, o.err, o.Exit)
	_ = os.Getpid
}
