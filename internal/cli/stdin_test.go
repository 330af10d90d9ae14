package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/belljar/belljar/internal/testkit"
)

func TestStdin(t *testing.T) {
	testkit.LeakCheck(t)
	b := newBench(t)
	src := b.file(t, "a.py", "x\n")
	open := func(path string) *os.File {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	// pipe gives the reading end of a pipe that got text and is then closed or left.
	pipe := func(text string, leave bool) *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if leave {
			t.Cleanup(func() { w.Close() })
		} else {
			w.Close()
		}
		return r
	}
	tests := []struct {
		name string
		in   *os.File
		args []string
		want string
		says string
	}{
		{"nothing", open(os.DevNull), nil, "", ""},
		{"a file", open(b.file(t, "in", "text\xff")), nil, "text\xff", ""},
		{"a pipe with data", pipe("data", false), nil, "data", ""},
		{"a pipe that was closed", pipe("", false), nil, "", ""},
		{"a pipe that somebody left open", pipe("", true), nil, "", "a pipe in which nothing came"},
		{"asked for", pipe("data", false), []string{"--stdin", "-"}, "data", ""},
		{"another file", pipe("data", true), []string{"--stdin", src}, "x\n", ""},
		{"a folder", open(b.dir), nil, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer tt.in.Close()
			b.in = tt.in
			if code := b.call(t, append([]string{"run", src}, tt.args...)...); code != 0 {
				t.Fatalf("exit code %d: %s", code, b.stderr)
			}
			if got := b.engine.asked.Stdin; got != tt.want {
				t.Errorf("stdin %q, want %q", got, tt.want)
			}
			has(t, "stderr", b.stderr.String(), tt.says)
			if tt.says == "" && b.stderr.Len() > 0 {
				t.Errorf("stderr %q", b.stderr)
			}
		})
	}
	t.Run("closed", func(t *testing.T) {
		f := open(os.DevNull)
		f.Close()
		b.in = f
		if code := b.call(t, "run", src); code != 0 {
			t.Errorf("exit code %d: %s", code, b.stderr)
		}
	})
	t.Run("more than a program can be given", func(t *testing.T) {
		b.in = open(b.file(t, "big", strings.Repeat("x", maxStdin+1)))
		defer b.in.Close()
		if code := b.call(t, "run", src); code != 126 {
			t.Errorf("exit code %d: %s", code, b.stderr)
		}
	})
	t.Run("the source", func(t *testing.T) {
		b.in = pipe("print(1)\n", false)
		defer b.in.Close()
		if code := b.call(t, "run", "-l", "python", "-"); code != 0 || b.engine.asked.Source != "print(1)\n" || b.engine.asked.Stdin != "" || b.engine.asked.Name != "" {
			t.Errorf("exit code %d, request %+v", code, b.engine.asked)
		}
	})
}

// TestNeighbourWrites starts a neighbour that holds the writing end, as the left
// side of a shell's pipeline does.
func TestNeighbourWrites(t *testing.T) {
	testkit.LeakCheck(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if neighbourWrites(r) {
		t.Error("we are no neighbour of ourselves")
	}
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat")
	cmd.Stdin, cmd.Stdout = hold, w // in our process group
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	hold.Close()
	if !neighbourWrites(r) {
		t.Error("the neighbour went unseen")
	}
	release.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if neighbourWrites(r) {
		t.Error("a neighbour that has gone is seen")
	}
}

func TestRelatives(t *testing.T) {
	ppid, pgrp, ok := relatives(os.Getpid())
	if !ok || ppid != os.Getppid() || pgrp <= 0 {
		t.Errorf("%d %d %v", ppid, pgrp, ok)
	}
	if _, _, ok := relatives(1 << 30); ok {
		t.Error("a process that cannot be")
	}
}
