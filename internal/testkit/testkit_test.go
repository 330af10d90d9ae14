package testkit

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMustHave(t *testing.T) {
	tests := []struct {
		name, ci, feature string
		want              bool
	}{
		{"unset", "", "root", false},
		{"named", "userns,root", "root", true},
		{"other", "userns", "root", false},
		{"all", "all", "root", true},
		{"spaces", "userns root", "root", true},
		{"part of a name", "cgroup-memory", "cgroup", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustHave(tt.ci, tt.feature); got != tt.want {
				t.Errorf("mustHave(%q, %q) = %v", tt.ci, tt.feature, got)
			}
		})
	}
}

// recorder stands in for a test and records how it would have ended.
type recorder struct {
	testing.TB
	log  string
	last func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(f func())          { r.last = f }
func (r *recorder) Setenv(k, v string)        {}
func (r *recorder) Errorf(f string, a ...any) { r.log += "error: " + fmt.Sprintf(f, a...) }
func (r *recorder) Fatalf(f string, a ...any) {
	r.log += "fatal: " + fmt.Sprintf(f, a...)
	panic(r)
}
func (r *recorder) Skip(a ...any) {
	r.log += "skip: " + fmt.Sprint(a...)
	panic(r)
}

func ended(r *recorder, f func()) string {
	defer func() {
		if x := recover(); x != nil && x != any(r) {
			panic(x)
		}
	}()
	f()
	return r.log
}

func TestNeed(t *testing.T) {
	features["absent"] = feature{func() error { return os.ErrNotExist }, "never"}
	features["present"] = feature{func() error { return nil }, ""}
	t.Cleanup(func() { delete(features, "absent"); delete(features, "present") })
	tests := []struct{ name, ci, feature, want string }{
		{"present", "", "present", ""},
		{"absent skips", "", "absent", "skip: needs absent"},
		{"absent fails where it must be there", "root,absent", "absent", "fatal: needs absent"},
		{"unknown name", "", "abesnt", `fatal: testkit.Need("abesnt")`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("BELLJAR_CI", tt.ci)
			r := &recorder{TB: t}
			ended(r, func() { Need(r, tt.feature) })
			if tt.want == "" && r.log != "" || !strings.HasPrefix(r.log, tt.want) {
				t.Errorf("got %q, want %q", r.log, tt.want)
			}
		})
	}
}

func TestLeakCheckSees(t *testing.T) {
	tests := []struct {
		name string
		leak func(t *testing.T, tmp string)
		want string
	}{
		{"nothing", func(t *testing.T, tmp string) {}, ""},
		{"goroutine", func(t *testing.T, tmp string) {
			stop := make(chan struct{})
			t.Cleanup(func() { close(stop) })
			go func() { <-stop }()
		}, "goroutine "},
		{"descriptor", func(t *testing.T, tmp string) {
			f, err := os.Open("/dev/null")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
		}, "/dev/null"},
		{"folder", func(t *testing.T, tmp string) {
			if err := os.Mkdir(filepath.Join(tmp, "belljar-x"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "belljar-x"},
		{"child", func(t *testing.T, tmp string) {
			NewCanary(t)
		}, "child process"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmp := t.TempDir()
			before := snapshot(tmp)
			tt.leak(t, tmp)
			left := strings.Join(snapshot(tmp).since(before), "\n")
			if tt.want == "" && left != "" || !strings.Contains(left, tt.want) {
				t.Errorf("left = %q, want %q in it", left, tt.want)
			}
		})
	}
}

func TestLeakCheckPasses(t *testing.T) {
	LeakCheck(t)
	c := NewCanary(t)
	c.Unharmed(t, "nothing here", c.File)
}

func TestCanaryTells(t *testing.T) {
	c := NewCanary(t)
	r := &recorder{TB: t}
	c.Unharmed(r, "stolen: canary-"+c.Nonce)
	if !strings.Contains(r.log, "canary leaked") {
		t.Errorf("a leaked text went unseen: %q", r.log)
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+c.Port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	r.log = ""
	c.Unharmed(r)
	if !strings.Contains(r.log, "1 connections") {
		t.Errorf("a connection went unseen: %q", r.log)
	}
}

func TestAsUser(t *testing.T) {
	if !AsUser(t, PlainUID) {
		return
	}
	if os.Geteuid() == 0 {
		t.Error("still root")
	}
	f, err := os.CreateTemp("", "x")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
