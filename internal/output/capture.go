package output

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

// DefaultHead and DefaultTail are how many bytes of a stream are kept from its
// beginning and its end: 1 MiB together.
const (
	DefaultHead = 512 << 10
	DefaultTail = 512 << 10
)

// firstBlock is what a capture allocates for the first bytes. Most programs print
// less than a page or two; touching a whole MiB for them would cost more page
// faults than starting them.
const firstBlock = 4 << 10

// Capture keeps the first and the last part of one stream and counts all of it.
// It is an io.Writer that never fails and never blocks. It may be written and read
// from several goroutines at once.
type Capture struct {
	headMax, tailMax int

	mu    sync.Mutex
	total int64
	head  []byte
	tail  []byte // a ring once it has tailMax bytes
	at    int    // where the ring's oldest byte is
}

// NewCapture makes a Capture that keeps head bytes of the beginning and tail
// bytes of the end. Zero or less means the defaults. Memory is taken as the bytes
// come, never more than head plus tail.
func NewCapture(head, tail int) *Capture {
	if head <= 0 {
		head = DefaultHead
	}
	if tail <= 0 {
		tail = DefaultTail
	}
	return &Capture{headMax: head, tailMax: tail}
}

// Write takes all of p.
func (c *Capture) Write(p []byte) (int, error) {
	n := len(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(n)

	if room := c.headMax - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = grow(c.head, p[:k], c.headMax)
		p = p[k:]
	}
	if len(p) > c.tailMax {
		p = p[len(p)-c.tailMax:] // only the last bytes can survive
	}
	if room := c.tailMax - len(c.tail); room > 0 {
		k := min(room, len(p))
		c.tail = grow(c.tail, p[:k], c.tailMax)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.at:], p)
		p = p[k:]
		c.at = (c.at + k) % c.tailMax
	}
	return n, nil
}

// grow appends p to b, doubling the memory but never past limit.
func grow(b, p []byte, limit int) []byte {
	if need := len(b) + len(p); need > cap(b) {
		size := max(need, 2*cap(b), firstBlock)
		bigger := make([]byte, len(b), min(size, limit))
		copy(bigger, b)
		b = bigger
	}
	return append(b, p...)
}

// Bytes tells how many bytes were written so far.
func (c *Capture) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Text gives what was kept as valid UTF-8, each byte that is none replaced by
// U+FFFD, and the size of the stream. NUL and carriage returns are kept. When
// something was left out, a line in its place says how much.
func (c *Capture) Text() (string, belljar.Output) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := belljar.Output{Bytes: c.total}
	if c.total <= int64(len(c.head)+len(c.tail)) {
		if len(c.tail) == 0 {
			return valid(c.head), info
		}
		// Joined before decoding: a character may lie across the seam.
		whole := make([]byte, 0, len(c.head)+len(c.tail))
		whole = append(whole, c.head...)
		return valid(append(whole, c.tail...)), info
	}
	info.Truncated = true
	last := make([]byte, 0, len(c.tail))
	last = append(last, c.tail[c.at:]...)
	last = append(last, c.tail[:c.at]...)
	first, last := wholeEnd(c.head), wholeStart(last)
	left := c.total - int64(len(first)+len(last))
	return valid(first) + fmt.Sprintf(captureMarker, left) + valid(last), info
}

// wholeEnd drops an unfinished character at the end of b.
func wholeEnd(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

// wholeStart drops the rest of a character at the start of b: at most three bytes,
// since more cannot belong to one.
func wholeStart(b []byte) []byte {
	n := 0
	for n < min(utf8.UTFMax-1, len(b)) && !utf8.RuneStart(b[n]) {
		n++
	}
	return b[n:]
}

// valid decodes b.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b) + len(b)/8)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		s.WriteRune(r) // RuneError is U+FFFD
		b = b[n:]
	}
	return s.String()
}
