//go:build unix

package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belljar/belljar"
)

func TestStateDir(t *testing.T) {
	cases := []struct {
		name             string
		state, xdg, home string
		want             string
	}{
		{"own variable", "/s/x/", "/xdg", "/home/a", "/s/x"},
		{"XDG", "", "/xdg", "/home/a", "/xdg/belljar"},
		{"relative XDG is ignored", "", "xdg", "/home/a", "/home/a/.local/state/belljar"},
		{"home", "", "", "/home/a", "/home/a/.local/state/belljar"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("BELLJAR_STATE_DIR", c.state)
			t.Setenv("XDG_STATE_HOME", c.xdg)
			t.Setenv("HOME", c.home)
			got, err := StateDir()
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	t.Run("relative own variable is an error", func(t *testing.T) {
		t.Setenv("BELLJAR_STATE_DIR", "state")
		if got, err := StateDir(); err == nil {
			t.Errorf("got %q", got)
		}
	})
	t.Run("no home", func(t *testing.T) {
		t.Setenv("BELLJAR_STATE_DIR", "")
		t.Setenv("XDG_STATE_HOME", "")
		t.Setenv("HOME", "")
		got, err := StateDir()
		if os.Geteuid() == 0 {
			if got != "/var/lib/belljar" {
				t.Errorf("root: %q, %v", got, err)
			}
		} else if err == nil {
			t.Errorf("got %q", got)
		}
	})
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("BELLJAR_STATE_DIR", dir)
	j := open(t, Config{})
	if want := filepath.Join(dir, "journal.db"); j.Path() != want {
		t.Errorf("default path %q, want %q", j.Path(), want)
	}
	no := false
	if !(Config{}).IsRequired() || (Config{Required: &no}).IsRequired() {
		t.Error("required is not true by default, or cannot be turned off")
	}
	retains := []struct {
		in   string
		want time.Duration
		bad  bool
	}{
		{in: "", want: 90 * 24 * time.Hour}, {in: "7d", want: 7 * 24 * time.Hour}, {in: "36h", want: 36 * time.Hour},
		{in: "forever"}, {in: "999999d"}, {in: "0", bad: true}, {in: "-1d", bad: true}, {in: "1s", bad: true},
		{in: "d", bad: true}, {in: "1.5d", bad: true}, {in: "soon", bad: true}, {in: "99999999999999999999d", bad: true},
	}
	for _, c := range retains {
		t.Run("retain "+c.in, func(t *testing.T) {
			got, err := Config{Retain: c.in}.retain()
			if (err != nil) != c.bad || got != c.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	for name, cfg := range map[string]Config{"retain": {Retain: "x"}, "redact": {Redact: []string{"("}}, "path": {Path: "/a\x00b"}} {
		t.Run("refuses "+name, func(t *testing.T) {
			_, err := Open(cfg)
			var r *belljar.Refusal
			if !errors.As(err, &r) || r.Code != belljar.CodeBadConfig || r.Hint == "" || !strings.Contains(r.Reason, "audit."+name) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestModes(t *testing.T) {
	path := place(t)
	j := open(t, Config{Path: path})
	appendAll(t, j, call("run_1", "x"))
	got := map[string]fs.FileMode{}
	for _, p := range []string{"", "-wal", "-shm"} {
		got["journal.db"+p] = mode(t, path+p)
	}
	got["folder"] = mode(t, filepath.Dir(path))
	want := map[string]fs.FileMode{"folder": 0o700, "journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	list(t, j, Filter{})
	if m := mode(t, path); m != 0o600 {
		t.Errorf("a file that others could read stays %v", m)
	}
}

// ready opens a journal at path and gives the refusal of Ready, which every other
// method must give as well.
func refusedAt(t *testing.T, path string) *belljar.Refusal {
	t.Helper()
	j, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	var r *belljar.Refusal
	if err := j.Ready(t.Context()); !errors.As(err, &r) {
		t.Fatalf("Ready: %v", err)
	}
	if r.Code != belljar.CodeAudit || r.Hint == "" || !strings.Contains(r.Reason, path) {
		t.Errorf("the refusal is %+v", r)
	}
	if err := j.Append(t.Context(), call("r", "x")); !errors.Is(err, r) {
		t.Errorf("Append: %v", err)
	}
	if err := j.Flush(t.Context()); !errors.Is(err, r) {
		t.Errorf("Flush: %v", err)
	}
	if _, err := j.List(t.Context(), Filter{}); !errors.Is(err, r) {
		t.Errorf("List: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return r
}

func TestRefusedPlaces(t *testing.T) {
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	cases := []struct {
		name string
		make func(path string) error
		want string
	}{
		{"link", func(p string) error { return os.Symlink(p+".real", p) }, "is a link"},
		{"link as the log", func(p string) error { return os.Symlink("/etc/passwd", p+"-wal") }, "-wal is a link"},
		{"folder", func(p string) error { return os.Mkdir(p, 0o700) }, "is no regular file"},
		{"pipe", func(p string) error { return syscall.Mkfifo(p, 0o600) }, "is no regular file"},
		{"folder that others write", func(p string) error { return os.Chmod(filepath.Dir(p), 0o777|fs.ModeSticky) }, "others may write to its folder"},
		{"no database", func(p string) error { return write(p, strings.Repeat("not a database\n", 500)) }, "the file is damaged"},
		{"foreign database", func(p string) error { return foreign(p, "CREATE TABLE t(x)") }, "another program"},
		{"foreign application", func(p string) error { return foreign(p, "PRAGMA application_id=7; PRAGMA user_version=1") }, "another program"},
		{"newer version", func(p string) error {
			return foreign(p, "PRAGMA application_id=1114262065; PRAGMA user_version=9")
		}, "newer version (format 9, this one knows 1)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := place(t)
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			if r := refusedAt(t, path); !strings.Contains(r.Reason, c.want) {
				t.Errorf("reason %q lacks %q", r.Reason, c.want)
			}
		})
	}
}

// foreign makes a database at path.
func foreign(path, sql string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer db.close()
	return db.exec(sql)
}

// A link in the folder's part is the operator's own arrangement.
func TestLinkedFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	j := open(t, Config{Path: filepath.Join(dir, "link", "j.db")})
	appendAll(t, j, call("run_1", "x"))
	if _, err := os.Stat(filepath.Join(dir, "real", "j.db")); err != nil {
		t.Error(err)
	}
}

// fakeInfo is a file of somebody.
type fakeInfo struct {
	fs.FileInfo
	uid uint32
}

func (f fakeInfo) Sys() any { return &syscall.Stat_t{Uid: f.uid} }

func TestOwner(t *testing.T) {
	me := uint32(os.Geteuid())
	cases := []struct {
		name   string
		uid    uint32
		orRoot bool
		want   bool
	}{
		{"ours", me, false, true},
		{"somebody's", me + 1, false, false},
		{"somebody's, root allowed", me + 1, true, false},
		{"root's, root allowed", 0, true, true},
		{"root's", 0, false, me == 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := ownedByUs(fakeInfo{uid: c.uid}, c.orRoot); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if err := trusted("/x", fakeInfo{uid: me + 1}); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("a folder of somebody else: %v", err)
	}
}
