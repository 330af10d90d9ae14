package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const canary = "canary-outside"

// open makes a workspace with files, next to a folder that holds a canary.
func open(t *testing.T, files map[string]string) (*Workspace, string) {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "ws")
	for _, d := range []string{dir, filepath.Join(base, "outside")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(base, "outside", "secret.txt"), canary+"\n")
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error is %v, want one with %q", err, part)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	link(t, "/", filepath.Join(dir, "root"))
	for name, want := range map[string]string{
		"/":                          "root of the file system",
		filepath.Join(dir, "root"):   "root of the file system",
		filepath.Join(dir, "absent"): "does not exist",
		filepath.Join(dir, "file"):   "is not a folder",
		filepath.Join(dir, "pipe"):   "is not a folder",
		filepath.Join(dir, "file/x"): "does not exist",
		strings.Repeat("x", 5000):    "cannot be opened: file name too long",
	} {
		w, err := Open(name)
		if err == nil {
			w.Close()
		}
		wantErr(t, err, want)
	}
}

// TestUnopened has what a test that runs as root cannot bring about.
func TestUnopened(t *testing.T) {
	for want, err := range map[string]error{
		"may not be read by this user": &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES},
		"cannot be opened: odd":        errors.New("odd"),
	} {
		if got := unopened(err).Error(); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

func TestPathsStayInside(t *testing.T) {
	w, dir := open(t, map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
	link(t, "../outside", filepath.Join(dir, "out"))
	link(t, filepath.Join(filepath.Dir(dir), "outside", "secret.txt"), filepath.Join(dir, "secret"))
	link(t, "../../outside/secret.txt", filepath.Join(dir, "sub", "up"))
	link(t, "sub/b.txt", filepath.Join(dir, "in"))
	link(t, "loop", filepath.Join(dir, "loop"))
	link(t, "/proc/self/environ", filepath.Join(dir, "environ"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()

	for _, tc := range []struct{ path, want string }{
		{"", "path is empty"},
		{"/etc/passwd", "is absolute"},
		{"../outside/secret.txt", "outside the workspace"},
		{"sub/../../outside/secret.txt", "outside the workspace"},
		{"..", "outside the workspace"},
		{"out/secret.txt", "outside the workspace"},
		{"secret", "outside the workspace"},
		{"sub/up", "outside the workspace"},
		{"environ", "outside the workspace"},
		{"loop", "too many links"},
		{"pipe", "not a regular file"},
		{"sub", "is a folder"},
		{".", "is a folder"},
		{"a.txt/x", "not a folder"},
		{"absent", "no 'absent'"},
		{"a\x00b", "NUL"},
		{strings.Repeat("x/", 3000), "6000 bytes"},
		{strings.Repeat("y", 300), "file name too long"},
	} {
		got, err := w.Read(ctx, tc.path, ReadOptions{})
		wantErr(t, err, tc.want)
		if strings.Contains(string(got), canary) || err != nil && strings.Contains(err.Error(), dir) {
			t.Errorf("Read(%q) leaks: %q, %v", tc.path, got, err)
		}
	}
	for _, p := range []string{"out", "../outside", "/", "pipe", "a.txt", "absent"} {
		if got, err := w.List(ctx, p); err == nil {
			t.Errorf("List(%q) = %v", p, got)
		}
		if got, err := w.Find(ctx, "**", p, 100); err == nil {
			t.Errorf("Find in %q = %v", p, got)
		}
	}
	for _, p := range []string{"out", "out/secret.txt", "secret", "../outside", "pipe", "environ"} {
		if got, err := w.Search(ctx, ".", SearchOptions{Path: p, Glob: "**", Max: 10}); err == nil {
			t.Errorf("Search in %q = %v", p, got)
		}
	}
	for _, p := range []string{"in", "./a.txt", "sub/../a.txt", "sub//b.txt"} {
		if _, err := w.Read(ctx, p, ReadOptions{}); err != nil {
			t.Errorf("Read(%q): %v", p, err)
		}
	}
}

func TestWalkFollowsNoLink(t *testing.T) {
	w, dir := open(t, map[string]string{"a.txt": "needle\n", "sub/b.txt": "needle\n"})
	link(t, "../outside", filepath.Join(dir, "out"))
	link(t, "..", filepath.Join(dir, "sub", "parent"))
	link(t, "b.txt", filepath.Join(dir, "sub", "c.txt"))
	if err := syscall.Mkfifo(filepath.Join(dir, "sub", "p.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := w.Find(context.Background(), "*.txt", ".", 100)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.txt", "sub/b.txt"}, got); diff != "" {
		t.Error(diff)
	}
	found, err := w.Search(context.Background(), "needle|canary", SearchOptions{Path: ".", Glob: "**", Max: 100})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Match{{Path: "a.txt", Line: 1, Text: "needle"}, {Path: "sub/b.txt", Line: 1, Text: "needle"}}, found); diff != "" {
		t.Error(diff)
	}
}

// TestSwappedMeanwhile changes a folder and a file into links outwards and back
// while they are read in every way. Nothing from outside may ever come back.
func TestSwappedMeanwhile(t *testing.T) {
	w, dir := open(t, map[string]string{"d/secret.txt": "inside\n", "f/x/secret.txt": "inside\n"})
	link(t, "../outside", filepath.Join(dir, "ln"))
	link(t, "../../outside/secret.txt", filepath.Join(dir, "d", "fl"))
	ctx := context.Background()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		j := func(e ...string) string { return filepath.Join(append([]string{dir}, e...)...) }
		for {
			select {
			case <-stop:
				return
			default:
			}
			// The folder d becomes a link outwards, the file secret.txt another.
			os.Rename(j("d"), j("d.real"))
			os.Rename(j("ln"), j("d"))
			os.Rename(j("d"), j("ln"))
			os.Rename(j("d.real"), j("d"))
			os.Rename(j("d", "secret.txt"), j("d", "real"))
			os.Rename(j("d", "fl"), j("d", "secret.txt"))
			os.Rename(j("d", "secret.txt"), j("d", "fl"))
			os.Rename(j("d", "real"), j("d", "secret.txt"))
		}
	})
	var good int
	for range 1500 {
		if b, err := w.Read(ctx, "d/secret.txt", ReadOptions{}); err == nil {
			good++
			if string(b) != "inside\n" {
				t.Fatalf("read %q", b)
			}
		}
		if m, err := w.Search(ctx, ".", SearchOptions{Path: ".", Glob: "**", Max: 50}); err == nil {
			for _, one := range m {
				if one.Text != "inside" {
					t.Fatalf("search found %+v", one)
				}
			}
		}
		if l, err := w.List(ctx, "d"); err == nil {
			for _, e := range l {
				if e.Size != nil && *e.Size == int64(len(canary)+1) {
					t.Fatalf("listing told of %+v", e)
				}
			}
		}
	}
	close(stop)
	wg.Wait()
	if good == 0 {
		t.Error("not one read met the real file: the race was not played")
	}
}

func TestClosed(t *testing.T) {
	w, _ := open(t, map[string]string{"a": "x"})
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	_, err := w.Read(context.Background(), "a", ReadOptions{})
	wantErr(t, err, "closed")
	if w.Check() == nil {
		t.Error("a closed workspace passes its check")
	}
}

func TestCheckOfEmptyFolder(t *testing.T) {
	w, _ := open(t, nil)
	if err := w.Check(); err != nil {
		t.Error(err)
	}
}
