package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// ReadOptions choose a part of a file. The zero value is the whole file.
type ReadOptions struct {
	StartLine int  // first line, counted from 1; 0 is 1
	MaxLines  int  // 0: all
	MaxChars  int  // 0: all
	Replace   bool // bytes that are no UTF-8 become U+FFFD instead of an error
}

func (o ReadOptions) whole() bool { return o.StartLine <= 1 && o.MaxLines == 0 && o.MaxChars == 0 }

// Read returns text of a file exactly as it is stored: line endings, a byte order
// mark and a missing last line feed stay. An answer larger than 4 MiB is an error
// that says how to ask for less, never a silent cut.
func (w *Workspace) Read(ctx context.Context, p string, o ReadOptions) ([]byte, error) {
	rel, err := relative(p)
	if err != nil {
		return nil, err
	}
	f, info, err := w.openRegular(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	var data []byte
	if o.whole() {
		data, err = w.readWhole(f, rel, info.Size())
	} else {
		data, err = w.readPart(ctx, f, rel, o)
	}
	if err != nil {
		return nil, w.say(rel, err)
	}
	if !utf8.Valid(data) {
		if !o.Replace {
			return nil, notText(rel, data)
		}
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	return data, nil
}

func (w *Workspace) readWhole(f *os.File, rel string, size int64) ([]byte, error) {
	if size > w.caps.file {
		return nil, w.tooLarge(rel, size)
	}
	var buf bytes.Buffer
	buf.Grow(int(size) + bytes.MinRead)
	// The size may be a lie (it grows, or a file system says 0), so the cap is
	// held while reading too.
	n, err := io.Copy(&buf, io.LimitReader(f, w.caps.file+1))
	if err != nil {
		return nil, err
	}
	if n > w.caps.file {
		return nil, w.tooLarge(rel, n)
	}
	return buf.Bytes(), nil
}

func (w *Workspace) tooLarge(rel string, size int64) error {
	return sentence(fmt.Sprintf("%s has %d bytes, more than the %s of one answer; read it in parts with start_line and max_lines, or its beginning with max_chars",
		plain.Quote(rel), size, bytesText(w.caps.file)))
}

func (w *Workspace) readPart(ctx context.Context, f *os.File, rel string, o ReadOptions) ([]byte, error) {
	var (
		out     []byte
		scanned int64
		line    = 1
		last    = 0 // line after which to stop, 0: none
		r       = bufio.NewReaderSize(f, 64<<10)
	)
	start := max(o.StartLine, 1)
	if o.MaxLines > 0 {
		last = start + o.MaxLines - 1
		if last < start { // overflow
			last = 0
		}
	}
	for {
		piece, err := r.ReadSlice('\n')
		if scanned&(1<<20-1)+int64(len(piece)) >= 1<<20 && ctx.Err() != nil {
			return nil, sentence("reading was cut off")
		}
		scanned += int64(len(piece))
		if scanned > w.caps.scanned {
			return nil, sentence(fmt.Sprintf("gave up after %s of %s; the lines asked for are beyond them", bytesText(w.caps.scanned), plain.Quote(rel)))
		}
		if line >= start {
			out = append(out, piece...)
		}
		if o.MaxChars > 0 && len(out) >= o.MaxChars*utf8.UTFMax {
			return firstChars(out, o.MaxChars), nil
		}
		if int64(len(out)) > w.caps.file {
			return nil, sentence(fmt.Sprintf("the part asked for of %s is larger than %s; ask for fewer lines with max_lines or characters with max_chars",
				plain.Quote(rel), bytesText(w.caps.file)))
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // the line goes on
			continue
		case errors.Is(err, io.EOF):
			if o.MaxChars > 0 {
				out = firstChars(out, o.MaxChars)
			}
			return out, nil
		case err != nil:
			return nil, err
		}
		if line == last {
			if o.MaxChars > 0 {
				out = firstChars(out, o.MaxChars)
			}
			return out, nil
		}
		line++
	}
}

// firstChars cuts after n characters; a byte that is no UTF-8 counts as one.
func firstChars(b []byte, n int) []byte {
	end := 0
	for ; n > 0 && end < len(b); n-- {
		_, size := utf8.DecodeRune(b[end:])
		end += size
	}
	return b[:end]
}

func notText(rel string, data []byte) error {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return sentence(fmt.Sprintf(`%s is not UTF-8 text (byte %d of the answer); errors="replace" reads it with U+FFFD in place of such bytes`,
		plain.Quote(rel), at))
}
