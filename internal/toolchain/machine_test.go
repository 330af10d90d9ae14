package toolchain

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/belljar/belljar/internal/language"
)

// A file named fake* is a link to this test binary. Called by that name it behaves
// as the script beside it says, and notes that it was called.
type behaviour struct {
	Probe, Version string // printed
	Stderr         string
	Exit           int
}

func TestMain(m *testing.M) {
	if name := os.Args[0]; strings.HasPrefix(filepath.Base(name), "fake") {
		syscall.Exit(fake(name, os.Args[1:])) // os.Exit waits a second under -race
	}
	os.Exit(m.Run())
}

func fake(name string, args []string) int {
	text, err := os.ReadFile(name + ".json")
	if err != nil { // called by a link
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return 99
		}
		if text, err = os.ReadFile(name + ".json"); err != nil {
			return 99
		}
	}
	var b behaviour
	if err := json.Unmarshal(text, &b); err != nil {
		return 98
	}
	log, err := os.OpenFile(name+".calls", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 97
	}
	fmt.Fprintln(log, strings.Join(args, " "), os.Environ())
	_ = log.Close()
	fmt.Fprint(os.Stderr, b.Stderr)
	if args[0] == "-V" {
		fmt.Print(b.Version)
		return 0
	}
	fmt.Print(b.Probe)
	return b.Exit
}

// machine is a folder with fake interpreters and a finder that knows only it.
type machine struct {
	t     *testing.T
	dir   string
	path  string
	state string
	env   map[string]string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	// The temporary folder may itself be behind a link.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: dir, state: filepath.Join(dir, "state")}
	m.env = map[string]string{"PATH": filepath.Join(dir, "bin"), "HOME": filepath.Join(dir, "home/ann"), "SECRET": "canary"}
	m.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/bin/false\nann:x:1000:1000::"+filepath.Join(dir, "home/ann")+":/bin/bash\n", 0o644)
	m.write("etc/os-release", "NAME=\"X\"\nID=ubuntu\nID_LIKE=\"debian\"\n", 0o644)
	m.write("home/ann/.profile", "", 0o644)
	return m
}

func (m *machine) finder(cfg Config) *Finder {
	f := New(cfg, m.state)
	f.host = host{
		getenv: func(k string) string { return m.env[k] },
		environ: func() []string {
			var out []string
			for k, v := range m.env {
				out = append(out, k+"="+v)
			}
			return out
		},
		passwd:    filepath.Join(m.dir, "etc/passwd"),
		osRelease: []string{filepath.Join(m.dir, "none"), filepath.Join(m.dir, "etc/os-release")},
	}
	return f
}

func (m *machine) write(name, text string, mode os.FileMode) string {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func (m *machine) link(target, name string) string {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.Symlink(target, path); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// fake makes a fake interpreter that answers its probe with a. It is a copy of the
// test binary, so that it has an identity of its own.
func (m *machine) fake(name string, a answer, b behaviour) string {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.Link(self, path); err != nil { // another file system
		text, err := os.ReadFile(self)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	if b.Probe == "" && b.Exit == 0 {
		if a.Executable == "" {
			a.Executable = path
		}
		if a.Folders == nil {
			a.Folders = []string{filepath.Dir(filepath.Dir(path))}
		}
		text, err := json.Marshal(a)
		if err != nil {
			m.t.Fatal(err)
		}
		b.Probe = string(text)
	}
	text, err := json.Marshal(b)
	if err != nil {
		m.t.Fatal(err)
	}
	m.write(name+".json", string(text), 0o644)
	return path
}

func (m *machine) calls(name string) []string {
	text, err := os.ReadFile(filepath.Join(m.dir, name) + ".calls")
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// lang is a language whose candidates are the given ones.
func lang(t *testing.T, candidates ...string) *language.Language {
	t.Helper()
	list, err := json.Marshal(candidates)
	if err != nil {
		t.Fatal(err)
	}
	r, err := language.Open(fstest.MapFS{
		"moon/probe": {Data: []byte("say what you are")},
		"moon/language.toml": {Data: []byte(`
name = "moon"
summary = "a language"
file = "main.moon"
[toolchain]
candidates = ` + string(list) + `
probe = ["-c", "{probe}"]
probe_file = "probe"
version = ["-V"]
version_pattern = 'Moon (\d[^\s]*)'
minimum = "3.8"
[run]
argv = ["{interpreter}", "{file}"]
[install]
debian = "apt-get install moon"
default = "Install moon."
`)}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Resolve("moon", nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (m *machine) find(f *Finder, l *language.Language) *Toolchain {
	m.t.Helper()
	tc, err := f.Find(context.Background(), l)
	if err != nil {
		m.t.Fatal(err)
	}
	return tc
}
