package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// Entry is one line of a listing.
type Entry struct {
	Name string `json:"name"`
	Type string `json:"type"` // file, folder, link, other
	Size *int64 `json:"size"` // bytes, of files only
}

// List returns the entries of one folder, hidden ones too, sorted by name. More
// than 10,000 entries are an error. Entries that vanish meanwhile are left out.
func (w *Workspace) List(ctx context.Context, p string) ([]Entry, error) {
	rel, err := relative(p)
	if err != nil {
		return nil, err
	}
	dir, err := w.openDir(rel)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	seen, err := w.entries(ctx, dir, rel, w.caps.entries)
	if err != nil {
		return nil, err
	}
	list := make([]Entry, 0, len(seen))
	for i, d := range seen {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, sentence("the listing was cut off")
		}
		// Looked up beneath the folder, not through the listing's own idea of
		// where it is: that could by now lead elsewhere.
		info, err := w.root.Lstat(path.Join(rel, d.Name()))
		if err != nil {
			continue
		}
		e := Entry{Name: d.Name(), Type: kind(info.Mode())}
		if info.Mode().IsRegular() {
			size := info.Size()
			e.Size = &size
		}
		list = append(list, e)
	}
	return list, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "link"
	}
	return "other"
}

// entries reads one folder, at most max entries of it, sorted by name.
func (w *Workspace) entries(ctx context.Context, dir dirFile, rel string, max int) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	for {
		if ctx.Err() != nil {
			return nil, sentence("the listing was cut off")
		}
		some, err := dir.ReadDir(1024)
		all = append(all, some...)
		if len(all) > max {
			return nil, sentence(fmt.Sprintf("%s has more than %d entries; name a folder further down", plain.Quote(rel), max))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, w.say(rel, err)
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}
