package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// errEnough ends a walk early without being an error.
var errEnough = errors.New("enough")

// A walker goes through the folders below start in a fixed order: the entries of
// a folder by name, a sub-folder in its place. It follows no link.
type walker struct {
	w       *Workspace
	glob    *glob
	visited int
	visit   func(rel string) error // called for each matching regular file
}

func (w *Workspace) walk(ctx context.Context, start string, g *glob, visit func(rel string) error) error {
	dir, err := w.openDir(start)
	if err != nil {
		return err
	}
	wk := &walker{w: w, glob: g, visit: visit}
	err = wk.folder(ctx, dir, start, g.begin(), 0)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

type dirFile interface {
	ReadDir(n int) ([]fs.DirEntry, error)
	Close() error
}

// folder walks one opened folder and closes it.
func (k *walker) folder(ctx context.Context, dir dirFile, rel string, at state, depth int) error {
	list, err := k.w.entries(ctx, dir, rel, k.w.caps.visited)
	// Closed before going down, so that a deep tree does not hold a descriptor
	// per level.
	dir.Close()
	if err != nil {
		return err
	}
	for _, d := range list {
		k.visited++
		if k.visited > k.w.caps.visited {
			return sentence(fmt.Sprintf("gave up after %d entries; narrow path or the pattern", k.w.caps.visited))
		}
		if k.visited%256 == 0 && ctx.Err() != nil {
			return sentence("the walk was cut off")
		}
		matched, next := k.glob.step(at, d.Name())
		child := path.Join(rel, d.Name())
		switch {
		case d.Type().IsRegular() && matched:
			if err := k.visit(child); err != nil {
				return err
			}
		case d.IsDir() && next != nil:
			if depth >= k.w.caps.depth {
				return sentence(fmt.Sprintf("%s is more than %d folders deep; give a path further down", plain.Quote(child), k.w.caps.depth))
			}
			seen, err := k.w.root.Lstat(child)
			if err != nil {
				continue // gone meanwhile
			}
			sub, err := k.w.openSeen(child, seen, fs.FileInfo.IsDir, "a folder")
			if err != nil {
				continue // gone, changed or not readable: there is nothing to see
			}
			if err := k.folder(ctx, sub, child, next, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Find returns the paths of regular files below p whose path matches pattern, in
// the order of the walk, at most max of them. Links are neither listed nor
// followed.
func (w *Workspace) Find(ctx context.Context, pattern, p string, max int) ([]string, error) {
	rel, err := relative(p)
	if err != nil {
		return nil, err
	}
	g, err := parseGlob(pattern)
	if err != nil {
		return nil, err
	}
	found := []string{}
	size := int64(0)
	err = w.walk(ctx, rel, g, func(child string) error {
		if size += int64(len(child)); size > w.caps.file {
			return w.tooMany(len(found))
		}
		found = append(found, child)
		if len(found) >= max {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (w *Workspace) tooMany(n int) error {
	return sentence(fmt.Sprintf("the answer is larger than %d bytes after %d matches; narrow path or the pattern, or ask for fewer with max_results", w.caps.file, n))
}
