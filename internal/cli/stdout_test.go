package cli

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/belljar/belljar"
)

// A full disk is said in words, whatever was to be written.
func TestStdoutIsFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	b := newBench(t)
	b.out = stdout{full}
	src := b.file(t, "a.py", "x\n")
	b.engine.run = func(_ context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
		if events != nil {
			events(chunk("stdout", "text"))
		}
		return exited(req, 0), nil
	}
	for _, tt := range []struct {
		args []string
		code int
	}{{[]string{"run", src}, 125}, {[]string{"run", "--json", src}, 125}, {[]string{"version"}, 1}, {[]string{"doctor"}, 1}} {
		if code := b.call(t, tt.args...); code != tt.code {
			t.Errorf("%s: exit code %d", tt.args, code)
		}
		has(t, "stderr", b.stderr.String(), "belljar: stdout could not be written: no space left on device")
	}
}

func TestStdoutLeadsNowhere(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		flags      int
		want       bool
	}{
		{"as Go opens a closed one", os.DevNull, os.O_RDWR, true},
		{"as a shell does", os.DevNull, os.O_WRONLY, false},
		{"another device", "/dev/zero", os.O_RDWR, false},
		{"a file", t.TempDir() + "/a", os.O_RDWR | os.O_CREATE, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := os.OpenFile(tt.path, tt.flags, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := leadsNowhere(int(f.Fd())); got != tt.want {
				t.Errorf("%v", got)
			}
		})
	}
	b := newBench(t)
	src := b.file(t, "a.py", "x\n")
	b.engine.run = func(_ context.Context, req *belljar.Request, _ func(belljar.Event)) (*belljar.Result, error) {
		res := exited(req, 0)
		res.Stdout = "text"
		return res, nil
	}
	for _, tt := range []struct {
		lost bool
		args []string
		said bool
	}{{true, []string{"run", src}, true}, {true, []string{"run", "--json", src}, true}, {true, []string{"run", "-q", src}, false}, {false, []string{"run", src}, false}} {
		b.outLost = tt.lost
		if code := b.call(t, tt.args...); code != 0 {
			t.Errorf("%s: exit code %d", tt.args, code)
		}
		if said := strings.Contains(b.stderr.String(), "what was printed there is lost."); said != tt.said {
			t.Errorf("%s: stderr %q", tt.args, b.stderr)
		}
	}
}
