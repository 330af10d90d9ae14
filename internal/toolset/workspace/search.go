package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// Match is one line that a search found.
type Match struct {
	Path string `json:"path"`
	Line int    `json:"line"` // counted from 1
	Text string `json:"text"` // the line without its end
	// Cut says that the line is longer than 2,000 characters and Text only its
	// beginning.
	Cut bool `json:"cut,omitempty"`
}

// SearchOptions narrow a search.
type SearchOptions struct {
	Path       string // a folder, or one file
	Glob       string // which files below a folder
	Max        int    // matches
	IgnoreCase bool
}

const maxLineChars = 2000

// Search returns the lines that match an RE2 pattern, file by file in the order
// of the walk, at most o.Max of them. Binary files (a NUL byte among the first
// 8,000) are passed over, as are files that cannot be read, unless the path
// names one. A line is searched in its first 1 MiB.
func (w *Workspace) Search(ctx context.Context, pattern string, o SearchOptions) ([]Match, error) {
	rel, err := relative(o.Path)
	if err != nil {
		return nil, err
	}
	re, err := compile(pattern, o.IgnoreCase)
	if err != nil {
		return nil, err
	}
	g, err := parseGlob(o.Glob)
	if err != nil {
		return nil, err
	}
	s := &searcher{w: w, re: re, max: o.Max, found: []Match{}, left: w.caps.scanned}

	info, err := w.root.Stat(rel)
	if err != nil {
		return nil, w.say(rel, err)
	}
	if !info.IsDir() {
		f, _, err := w.openRegular(rel)
		if err != nil {
			return nil, err
		}
		if err := s.file(ctx, f, rel); err != nil && !errors.Is(err, errEnough) {
			return nil, w.say(rel, err)
		}
		return s.found, nil
	}
	err = w.walk(ctx, rel, g, func(child string) error {
		seen, err := w.root.Lstat(child)
		if err != nil {
			return nil // gone meanwhile
		}
		f, err := w.openSeen(child, seen, func(i fs.FileInfo) bool { return i.Mode().IsRegular() }, "a regular file")
		if err != nil {
			return nil // gone, changed or not readable: there is nothing to see
		}
		return s.file(ctx, f, child)
	})
	if err != nil {
		return nil, err
	}
	return s.found, nil
}

func compile(pattern string, ignoreCase bool) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern is %d bytes long, more than %d", len(pattern), maxPattern)
	}
	if ignoreCase {
		pattern = "(?i:" + pattern + ")"
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return nil, fmt.Errorf("the pattern is no RE2 regular expression: %s", plain.Line(why, 200))
	}
	return re, nil
}

type searcher struct {
	w     *Workspace
	re    *regexp.Regexp
	max   int
	left  int64 // bytes that may still be read
	found []Match
	size  int64 // bytes of the answer so far
	buf   *bufio.Reader
}

// file searches one opened file and closes it.
func (s *searcher) file(ctx context.Context, f *os.File, rel string) error {
	defer f.Close()
	if ctx.Err() != nil {
		return sentence("the search was cut off")
	}
	if s.buf == nil {
		s.buf = bufio.NewReaderSize(f, 64<<10)
	} else {
		s.buf.Reset(f)
	}
	head, err := s.buf.Peek(8000)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil // cannot be read, as a whole kind of special files cannot
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	var (
		long   []byte // a line that does not fit the buffer, as far as it is kept
		number = 1
		since  int64 // bytes since the last look at the context
	)
	for {
		piece, err := s.buf.ReadSlice('\n')
		s.left -= int64(len(piece))
		if s.left < 0 {
			return sentence(fmt.Sprintf("gave up after reading %d bytes, at %s; narrow path or glob", s.w.caps.scanned, plain.Quote(rel)))
		}
		if since += int64(len(piece)); since >= 1<<20 {
			since = 0
			if ctx.Err() != nil {
				return sentence("the search was cut off")
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			if room := s.w.caps.line - len(long); room > 0 {
				long = append(long, piece[:min(room, len(piece))]...)
			}
			continue
		}
		line := piece
		if len(long) > 0 {
			if room := s.w.caps.line - len(long); room > 0 {
				long = append(long, piece[:min(room, len(piece))]...)
			}
			line, long = long, long[:0]
		}
		if err != nil && len(line) == 0 {
			return nil // the end, or what was read until a fault
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if s.re.Match(line) {
			if err := s.add(rel, number, line); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
		number++
	}
}

func (s *searcher) add(rel string, number int, line []byte) error {
	m := Match{Path: rel, Line: number}
	if kept := firstChars(line, maxLineChars); len(kept) < len(line) {
		line, m.Cut = kept, true
	}
	m.Text = strings.ToValidUTF8(string(line), "\uFFFD")
	if s.size += int64(len(rel) + len(m.Text)); s.size > s.w.caps.file {
		return s.w.tooMany(len(s.found))
	}
	s.found = append(s.found, m)
	if len(s.found) >= s.max {
		return errEnough
	}
	return nil
}
