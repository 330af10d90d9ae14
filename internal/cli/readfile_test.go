package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/belljar/belljar"
	"golang.org/x/sys/unix"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo.py")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNamedPipes(t *testing.T) {
	b := newBench(t)
	src := b.file(t, "a.py", "x\n")
	b.engine.run = func(_ context.Context, req *belljar.Request, _ func(belljar.Event)) (*belljar.Result, error) {
		return exited(req, 0), nil
	}
	for _, tt := range []struct {
		name string
		args func(path string) []string
		got  func(r *belljar.Request) string
	}{
		{"source", func(p string) []string { return []string{p} }, func(r *belljar.Request) string { return r.Source }},
		{"stdin", func(p string) []string { return []string{"--stdin", p, src} }, func(r *belljar.Request) string { return r.Stdin }},
		{"file", func(p string) []string { return []string{"--file", p, src} }, func(r *belljar.Request) string { return r.Files[0].Content }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := fifo(t)
			args := append([]string{"run"}, tt.args(path)...)
			if code := b.call(t, args...); code != 126 {
				t.Errorf("exit code %d without a writer", code)
			}
			has(t, "stderr", b.stderr.String(), "it is a named pipe that nobody writes to")

			// A writer gets in as soon as we read, and may take its time.
			written := make(chan error, 1)
			go func() {
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteString("pri")
				}
				if err == nil {
					_, err = f.WriteString("nt()")
				}
				written <- errors.Join(err, f.Close())
			}()
			if code := b.call(t, args...); code != 0 {
				t.Errorf("exit code %d: %s", code, b.stderr)
			}
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			if got := tt.got(b.engine.asked); got != "print()" {
				t.Errorf("read %q", got)
			}

			// One that writes nothing is waited for until the call is cancelled.
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			signals := make(chan os.Signal, 1)
			b.signals = signals
			signals <- syscall.SIGHUP
			if code := b.call(t, args...); code != 130 {
				t.Errorf("exit code %d after a signal", code)
			}
			has(t, "stderr", b.stderr.String(), "cancelled by hangup before the program ran")
			b.signals = nil
		})
	}
}

// Pipes of a shell have no name of their own: what was written before is read, and
// nothing is an end as well.
func TestNamelessPipes(t *testing.T) {
	for _, text := range []string{"", "print()"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		w.Close()
		got, err := readFile(context.Background(), fmt.Sprintf("/dev/fd/%d", r.Fd()), 100)
		if err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestReadFileIsBounded(t *testing.T) {
	path := newBench(t).file(t, "a", "12345")
	for most, want := range map[int64]error{4: errTooLong, 5: nil} {
		if _, err := readFile(context.Background(), path, most); !errors.Is(err, want) {
			t.Errorf("at most %d: %v", most, err)
		}
	}
	if _, err := readFile(context.Background(), "/dev/zero", 4); !errors.Is(err, errTooLong) {
		t.Errorf("a device without an end: %v", err)
	}
}
