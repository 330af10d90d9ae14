package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// Workspace is one opened folder. It is safe for concurrent use.
type Workspace struct {
	root     *os.Root
	caps     caps
	searches chan struct{} // one for each search that works now
}

// caps bound every answer. Sizes in bytes.
type caps struct {
	file    int64 // of one read_file answer
	answer  int64 // of any other answer, as JSON
	results int   // of one answer whose caller named no number
	entries int   // of one folder
	visited int   // entries looked at by one walk
	depth   int   // folders below the start of a walk
	scanned int64 // bytes read by one call
	line    int   // of one line that is searched
}

var defaultCaps = caps{
	file:    4 << 20,
	answer:  8 << 20,
	results: 20_000,
	entries: 200_000,
	visited: 1_000_000,
	depth:   64,
	scanned: 2 << 30,
	line:    1 << 20,
}

// MaxResults is the most that can be asked for by number.
const MaxResults = 100_000

// Open opens dir. It refuses the root of the file system: that would open
// /proc, where the engine's own environment can be read. The error ends a
// sentence that begins with the workspace: "does not exist".
func Open(dir string) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, unopened(err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	if abs == filepath.VolumeName(abs)+string(filepath.Separator) {
		return nil, sentence("is the root of the file system, which cannot be a workspace")
	}
	// Stat first: os.OpenRoot opens whatever it finds, and would wait for a
	// writer on a named pipe.
	info, err := os.Stat(abs)
	if err != nil {
		return nil, unopened(err)
	}
	if !info.IsDir() {
		return nil, sentence("is not a folder")
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, unopened(err)
	}
	return &Workspace{root: root, caps: defaultCaps, searches: make(chan struct{}, runtime.GOMAXPROCS(0))}, nil
}

// unopened says why a folder could not be opened. The path is not said again.
func unopened(err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return sentence("does not exist")
	case errors.Is(err, fs.ErrPermission):
		return sentence("may not be read by this user")
	case errors.As(err, &errno):
		return sentence("cannot be opened: " + errno.Error())
	}
	return fmt.Errorf("cannot be opened: %w", err)
}

// Close closes the folder; calls after it fail.
func (w *Workspace) Close() error { return w.root.Close() }

// Name is the folder's path on the host: for the operator, never for a script.
func (w *Workspace) Name() string { return w.root.Name() }

// Check reads the folder once and says what is in the way.
func (w *Workspace) Check() error {
	f, err := w.root.Open(".")
	if err != nil {
		return fmt.Errorf("read the workspace: %w", err)
	}
	defer f.Close()
	if _, err := f.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the workspace: %w", err)
	}
	return nil
}

// relative turns the path a script gave into one beneath the folder.
func relative(p string) (string, error) {
	switch {
	case p == "":
		return "", errors.New(`the path is empty; "." is the workspace itself`)
	case len(p) > 4096:
		return "", fmt.Errorf("the path is %d bytes long, more than 4096", len(p))
	case strings.ContainsRune(p, 0):
		return "", fmt.Errorf("the path %s holds a NUL character", plain.Quote(p))
	case path.IsAbs(p) || filepath.IsAbs(p):
		return "", fmt.Errorf("the path %s is absolute; give it relative to the workspace", plain.Quote(p))
	}
	if runtime.GOOS == "windows" {
		p = filepath.ToSlash(p)
	}
	c := path.Clean(p)
	if c == ".." || strings.HasPrefix(c, "../") {
		return "", outside(p)
	}
	return c, nil
}

func outside(p string) error {
	return fmt.Errorf("the path %s leads outside the workspace", plain.Quote(p))
}

// openRegular opens a regular file for reading and nothing else. The first look
// keeps it from opening a device at all; the second one, on what was opened,
// decides. Opening never waits, so a pipe put there in between cannot hang it.
func (w *Workspace) openRegular(rel string) (*os.File, os.FileInfo, error) {
	info, err := w.root.Stat(rel)
	if err != nil {
		return nil, nil, w.say(rel, err)
	}
	if err := regular(rel, info); err != nil {
		return nil, nil, err
	}
	f, err := w.root.OpenFile(rel, openFlags, 0)
	if err != nil {
		return nil, nil, w.say(rel, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(rel, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, w.say(rel, err)
	}
	return f, info, nil
}

func regular(rel string, info os.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return sentence(fmt.Sprintf("%s is a folder; list_dir lists it", plain.Quote(rel)))
	default:
		return sentence(fmt.Sprintf("%s is not a regular file", plain.Quote(rel)))
	}
}

// openDir opens a folder. The first look matters: without it a pipe or a device
// would be opened.
func (w *Workspace) openDir(rel string) (*os.File, error) {
	info, err := w.root.Stat(rel)
	if err != nil {
		return nil, w.say(rel, err)
	}
	return w.openSeen(rel, info, os.FileInfo.IsDir, "a folder")
}

// openSeen opens what a look has seen before. A different file in its place, a
// link swapped in for instance, is an error, so that a walk follows no link even
// when someone races it.
func (w *Workspace) openSeen(rel string, seen os.FileInfo, is func(os.FileInfo) bool, what string) (*os.File, error) {
	if !is(seen) {
		return nil, sentence(fmt.Sprintf("%s is not %s", plain.Quote(rel), what))
	}
	f, err := w.root.OpenFile(rel, openFlags, 0)
	if err != nil {
		return nil, w.say(rel, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, w.say(rel, err)
	}
	if !is(info) || !os.SameFile(seen, info) {
		f.Close()
		return nil, sentence(fmt.Sprintf("%s changed while it was opened", plain.Quote(rel)))
	}
	return f, nil
}

// sentence is an error that is already fit for a script.
type sentence string

func (s sentence) Error() string { return string(s) }

// say puts what the kernel answered into words without a path of the host.
func (w *Workspace) say(rel string, err error) error {
	var done sentence
	var errno syscall.Errno
	q := plain.Quote(rel)
	switch {
	case errors.As(err, &done):
		return done
	case errors.Is(err, fs.ErrNotExist):
		return sentence("there is no " + q + " in the workspace")
	case errors.Is(err, fs.ErrPermission):
		return sentence("no permission to read " + q)
	case errors.Is(err, fs.ErrClosed):
		return sentence("the workspace is closed")
	case errors.Is(err, syscall.ENOTDIR):
		return sentence("a part of the path " + q + " is not a folder")
	case errors.Is(err, syscall.ELOOP):
		return sentence("the path " + q + " has too many links")
	case strings.Contains(err.Error(), "path escapes from parent"):
		return sentence(outside(rel).Error())
	case errors.As(err, &errno):
		return sentence("cannot read " + q + ": " + errno.Error())
	}
	return sentence("cannot read " + q)
}
