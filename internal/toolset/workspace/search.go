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
	"regexp/syntax"
	"strings"
	"unicode/utf8"

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
	Max        int    // matches that are enough; 0: all
	IgnoreCase bool
}

const maxLineChars = 2000

// Search returns the lines that match an RE2 pattern, file by file in the order
// of the walk: the first o.Max of them, or all when that is 0. All may be 20,000
// at most, and any answer 8 MiB; more is an error, as is having read 2 GiB. Binary
// files (a NUL byte among the first 8,000) are passed over, as are files that
// cannot be read, unless the path names one. A line is searched in its first 1 MiB.
// As many searches work at once as there are processors, others wait.
func (w *Workspace) Search(ctx context.Context, pattern string, o SearchOptions) ([]Match, error) {
	rel, err := relative(o.Path)
	if err != nil {
		return nil, err
	}
	re, prefix, err := compile(pattern, o.IgnoreCase)
	if err != nil {
		return nil, err
	}
	g, err := parseGlob(o.Glob)
	if err != nil {
		return nil, err
	}
	if err := w.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer func() { <-w.searches }()
	s := &searcher{w: w, re: re, prefix: prefix, found: []Match{}, left: w.caps.scanned,
		tally: tally{caps: w.caps, want: o.Max, remedy: "narrow pattern, path or glob"}}

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
			return nil, w.say(rel, s.stopped(err))
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
		return nil, s.stopped(err)
	}
	return s.found, nil
}

// takeTurn waits until few enough searches are at work.
func (w *Workspace) takeTurn(ctx context.Context) error {
	select {
	case w.searches <- struct{}{}:
		return nil
	default:
	}
	select {
	case w.searches <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for other searches: %w", ctx.Err())
	}
}

// maxProgram bounds a compiled pattern, in instructions: a search may cost as
// many steps for each character.
const maxProgram = 1000

// compile also gives the bytes with which every match begins; none: unknown.
func compile(pattern string, ignoreCase bool) (*regexp.Regexp, []byte, error) {
	if len(pattern) > maxPattern {
		return nil, nil, fmt.Errorf("the pattern is %d bytes long, more than %d", len(pattern), maxPattern)
	}
	if ignoreCase {
		pattern = "(?i:" + pattern + ")"
	}
	invalid := func(err error) error {
		why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return fmt.Errorf("the pattern is no RE2 regular expression: %s", plain.Line(why, 200))
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, nil, invalid(err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, nil, invalid(err)
	}
	if n := len(prog.Inst); n > maxProgram {
		return nil, nil, fmt.Errorf("the pattern becomes %d instructions, more than %d; repeat less in it", n, maxProgram)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, nil, invalid(err)
	}
	prefix, _ := re.LiteralPrefix()
	return re, []byte(prefix), nil
}

type searcher struct {
	w      *Workspace
	re     *regexp.Regexp
	prefix []byte // of every match
	left   int64  // bytes that may still be read
	found  []Match
	tally  tally
	buf    *bufio.Reader
}

// unlooked is how many bytes are searched between two looks at the context. With
// the largest pattern they take some tenths of a second.
const unlooked = 32 << 10

// match tells whether a line matches. The end of the context ends it early, with
// an answer that means nothing then.
func (s *searcher) match(ctx context.Context, line []byte) bool {
	if len(line) <= unlooked {
		return s.re.Match(line)
	}
	if !bytes.Contains(line, s.prefix) { // much quicker than to read the line by characters
		return false
	}
	return s.re.MatchReader(&runes{ctx: ctx, text: line})
}

// runes gives the characters of a line until the context ends.
type runes struct {
	ctx  context.Context
	text []byte
	read int // since the last look
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.read++; r.read >= unlooked/8 {
		if r.read = 0; r.ctx.Err() != nil {
			return 0, 0, io.EOF
		}
	}
	if len(r.text) == 0 {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.text)
	r.text = r.text[size:]
	return c, size, nil
}

// stopped says how far a search came that met a bound.
func (s *searcher) stopped(err error) error {
	if b, ok := errors.AsType[bound](err); ok {
		return b.after(len(s.found))
	}
	return err
}

func (s *searcher) timeUp(rel string) error {
	return bound{fmt.Sprintf("the search was cut off after reading %d MiB, at %s", (s.w.caps.scanned-s.left)>>20, plain.Quote(rel)), "narrow path or glob"}
}

// file searches one opened file and closes it.
func (s *searcher) file(ctx context.Context, f *os.File, rel string) error {
	defer f.Close()
	if ctx.Err() != nil {
		return s.timeUp(rel)
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
			return bound{fmt.Sprintf("gave up after reading %s, at %s", bytesText(s.w.caps.scanned), plain.Quote(rel)), "narrow path or glob"}
		}
		if since += int64(len(piece)); since >= unlooked {
			since = 0
			if ctx.Err() != nil {
				return s.timeUp(rel)
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
		matched := s.match(ctx, line)
		if len(line) > unlooked && ctx.Err() != nil {
			return s.timeUp(rel)
		}
		if matched {
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
	if err := s.tally.room(rel, jsonSize(rel)+jsonSize(m.Text)+50); err != nil {
		return err
	}
	s.found = append(s.found, m)
	return s.tally.enough()
}
