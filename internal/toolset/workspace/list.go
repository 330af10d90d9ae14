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
// than 20,000 entries, or an answer above 8 MiB, are an error. Entries that vanish
// meanwhile are left out.
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
	seen, err := w.entries(ctx, dir, rel, w.caps.results)
	if err != nil {
		return nil, err
	}
	size := int64(0)
	list := make([]Entry, 0, len(seen))
	for i, d := range seen {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, sentence(fmt.Sprintf("the listing of %s was cut off after %d of %d entries", plain.Quote(rel), i, len(seen)))
		}
		if size += int64(jsonSize(d.Name())) + 50; size > w.caps.answer {
			return nil, sentence(fmt.Sprintf("%s has %d entries, which do not fit the %s of one answer; find_files finds some of them by a pattern",
				plain.Quote(rel), len(seen), bytesText(w.caps.answer)))
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
			return nil, bound{fmt.Sprintf("the listing of %s was cut off after %d entries", plain.Quote(rel), len(all)), "name a folder further down"}
		}
		some, err := dir.ReadDir(1024)
		all = append(all, some...)
		if len(all) > max {
			return nil, bound{fmt.Sprintf("%s has more than %d entries", plain.Quote(rel), max), "name a folder further down, or find some of them with find_files and a pattern"}
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
