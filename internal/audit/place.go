package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// StateDir is the folder in which Belljar keeps what outlives a run: the journal
// and what other parts store. $BELLJAR_STATE_DIR, else $XDG_STATE_HOME/belljar,
// else ~/.local/state/belljar; /var/lib/belljar for root without a home. It makes
// nothing.
func StateDir() (string, error) {
	if dir := os.Getenv("BELLJAR_STATE_DIR"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("BELLJAR_STATE_DIR is %q, which is not an absolute path", dir)
		}
		return filepath.Clean(dir), nil
	}
	// The XDG specification has relative paths ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "belljar"), nil
	}
	home, err := os.UserHomeDir()
	if err == nil && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "belljar"), nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/belljar", nil
	}
	return "", errors.New("there is no home folder to keep state in; set BELLJAR_STATE_DIR to an absolute path")
}

// placeError is something about the folder or file that the operator must change.
type placeError struct{ cause, remedy string }

func (e *placeError) Error() string { return e.cause }

// prepare makes the folder (0700) and the file (0600) when they are absent,
// refuses ones that somebody else could have laid there or can change, and
// returns the path with links in the folder's part resolved.
//
// An existing file is never opened here: closing it would drop the locks that
// another connection of this process holds on it.
func prepare(path string) (string, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return "", err
	}
	if err := trusted(folder, info); err != nil {
		return "", err
	}
	path = filepath.Join(folder, filepath.Base(path))
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := checkFile(path+suffix, suffix == ""); err != nil {
			return "", err
		}
	}
	return path, nil
}

// trusted refuses a folder in which others could swap the file.
func trusted(folder string, info fs.FileInfo) error {
	if !ownedByUs(info, true) {
		return &placeError{fmt.Sprintf("its folder %s belongs to another user", folder),
			"Set audit.path, or BELLJAR_STATE_DIR, to a place of your own."}
	}
	if writableByOthers(info) {
		return &placeError{fmt.Sprintf("others may write to its folder %s", folder),
			fmt.Sprintf("Run `chmod go-w %s`, or set audit.path to a file in a folder of its own.", folder)}
	}
	return nil
}

func checkFile(path string, create bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err = os.Lstat(path) // another process was faster
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return &placeError{fmt.Sprintf("%s is a link", path), "Set audit.path to the file itself."}
	case !info.Mode().IsRegular():
		return &placeError{fmt.Sprintf("%s is no regular file", path), "Move it away, or set audit.path to another file."}
	case !ownedByUs(info, false):
		return &placeError{fmt.Sprintf("%s belongs to another user", path), "Run as that user, or set audit.path to another file."}
	}
	if readableByOthers(info) {
		return os.Chmod(path, 0o600)
	}
	return nil
}
