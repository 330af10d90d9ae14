package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox/initproc"
	"github.com/belljar/belljar/internal/testkit"
)

// TestMain starts one spawner beforehand: its program stays in memory for the life
// of the process, which a leak check would otherwise find in the first test.
func TestMain(m *testing.M) {
	s, err := initproc.Start(nil)
	if err != nil {
		panic(err)
	}
	s.Close()
	os.Exit(m.Run())
}

// bothWays runs a test with whatever rights it has and, as root, once more as an
// ordinary user: the two are set up differently from the first system call on.
func bothWays(t *testing.T, f func(t *testing.T, h *Host)) {
	t.Helper()
	testkit.Need(t, "userns", "debian-python")
	if os.Geteuid() == 0 {
		t.Run("root", func(t *testing.T) {
			testkit.LeakCheck(t)
			f(t, open(t))
		})
	}
	t.Run("user", func(t *testing.T) {
		if !testkit.AsUser(t, userID) {
			return
		}
		testkit.LeakCheck(t)
		f(t, open(t))
	})
}

// userID is a made-up ordinary user: 65534 would not do, because it is also what
// every id without a mapping is shown as.
const userID = 54321

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
