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
// a folder by name, a sub-folder in its place. It follows no link and enters no
// .git, whatever the pattern; what is in there is of use only to git.
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
	list, err := k.w.entries(ctx, dir, rel, k.w.caps.entries)
	// Closed before going down, so that a deep tree does not hold a descriptor
	// per level.
	dir.Close()
	if err != nil {
		return err
	}
	for _, d := range list {
		k.visited++
		if k.visited > k.w.caps.visited {
			return bound{fmt.Sprintf("gave up after looking at %d entries, at %s", k.w.caps.visited, plain.Quote(path.Join(rel, d.Name()))), narrower}
		}
		if k.visited%256 == 0 && ctx.Err() != nil {
			return bound{"the walk was cut off at " + plain.Quote(path.Join(rel, d.Name())), narrower}
		}
		matched, next := k.glob.step(at, d.Name())
		child := path.Join(rel, d.Name())
		switch {
		case d.Type().IsRegular() && matched:
			if err := k.visit(child); err != nil {
				return err
			}
		case d.IsDir() && next != nil && d.Name() != ".git":
			if depth >= k.w.caps.depth {
				return bound{fmt.Sprintf("%s is more than %d folders deep", plain.Quote(child), k.w.caps.depth), "give a path further down"}
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

// narrower is what helps against most bounds.
const narrower = "narrow path or the pattern"

// Find returns the paths of regular files below p whose path matches pattern, in
// the order of the walk: the first max of them, or all when max is 0. All may be
// 20,000 at most, and any answer 8 MiB; more is an error. Links are neither listed
// nor followed.
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
	t := tally{caps: w.caps, want: max, remedy: narrower}
	err = w.walk(ctx, rel, g, func(child string) error {
		if err := t.room(child, jsonSize(child)+1); err != nil {
			return err
		}
		found = append(found, child)
		return t.enough()
	})
	if b, ok := errors.AsType[bound](err); ok {
		return nil, b.after(len(found))
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}
