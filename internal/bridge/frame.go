package bridge

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

const (
	headLen = 9
	// hardFrame is the length above which a header is not one of ours: reading
	// on would mean to trust a number that no client sends.
	hardFrame = 1 << 30
	// bufLen is what a stream reads at once. Frames that fit cost one system call.
	bufLen = 64 << 10
)

const (
	kindCall  = 1
	kindText  = 2
	kindJSON  = 3
	kindBytes = 4
	kindError = 5
)

// errBroken says that what came is not made of frames.
var errBroken = errors.New("broken frame header on the bridge")

// head is the header of a frame.
type head struct {
	length int64
	id     uint32
	kind   byte
}

func (h head) put(b *[headLen]byte) {
	binary.LittleEndian.PutUint32(b[0:], uint32(h.length))
	binary.LittleEndian.PutUint32(b[4:], h.id)
	b[8] = h.kind
}

// frames reads frames through a buffer that is used again for every frame.
type frames struct {
	r          io.Reader
	buf        []byte
	start, end int
}

func newFrames(r io.Reader) *frames { return &frames{r: r, buf: make([]byte, bufLen)} }

// fill reads until n bytes are buffered, n at most bufLen.
func (f *frames) fill(n int) error {
	if f.end-f.start >= n {
		return nil
	}
	if f.start == f.end {
		f.start, f.end = 0, 0
	} else if f.start+n > len(f.buf) {
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start = 0
	}
	for f.end-f.start < n {
		m, err := f.r.Read(f.buf[f.end:])
		f.end += m
		if err != nil && f.end-f.start < n {
			if err == io.EOF && f.end > f.start {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// head reads the next header. io.EOF means that the other side ended between
// two frames, errBroken that it does not speak frames.
func (f *frames) head() (head, error) {
	if err := f.fill(headLen); err != nil {
		return head{}, err
	}
	b := f.buf[f.start:]
	h := head{
		length: int64(binary.LittleEndian.Uint32(b)),
		id:     binary.LittleEndian.Uint32(b[4:]),
		kind:   b[8],
	}
	f.start += headLen
	if h.length > hardFrame {
		return h, errBroken
	}
	return h, nil
}

// body returns the next n bytes in memory of their own.
func (f *frames) body(n int64) ([]byte, error) {
	b := make([]byte, n)
	m := copy(b, f.buf[f.start:f.end])
	f.start += m
	if int64(m) == n {
		return b, nil
	}
	if n-int64(m) < bufLen {
		// Not much is missing: read it through the buffer, with what follows it.
		rest := int(n) - m
		if err := f.fill(rest); err != nil {
			return nil, cutOff(err)
		}
		copy(b[m:], f.buf[f.start:f.start+rest])
		f.start += rest
		return b, nil
	}
	_, err := io.ReadFull(f.r, b[m:])
	return b, cutOff(err)
}

// skip reads n bytes and forgets them.
func (f *frames) skip(n int64) error {
	for n > 0 {
		if f.start == f.end {
			if err := f.fill(1); err != nil {
				return cutOff(err)
			}
		}
		m := min(n, int64(f.end-f.start))
		f.start += int(m)
		n -= m
	}
	return nil
}

// cutOff turns an end inside of a frame into io.ErrUnexpectedEOF.
func cutOff(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseCall takes the body of a call apart, or says what is wrong with it. The
// name it returns can be shown: it holds printable characters only.
func parseCall(kind byte, body []byte, cfg *Config) (tool string, args json.RawMessage, bad *belljar.ToolError) {
	if kind != kindCall {
		return "", nil, badFrame("", "a frame of kind %d is no call (kind %d)", kind, kindCall)
	}
	if len(body) == 0 {
		return "", nil, badFrame("", "a call without a body")
	}
	n := int(body[0])
	if len(body) < 1+n {
		return "", nil, badFrame("", "the frame ends inside of the tool's name")
	}
	name := body[1 : 1+n]
	switch {
	case n == 0:
		return "", nil, badFrame("", "a call without a tool's name")
	case n > cfg.MaxName:
		return "", nil, badFrame("", "a tool's name of %d bytes, at most %d are allowed", n, cfg.MaxName)
	case !printable(name):
		return "", nil, badFrame("", "a tool's name with characters that cannot be printed")
	}
	tool = string(name)
	args = json.RawMessage(body[1+n:])
	switch err := checkObject(args, cfg.MaxDepth); {
	case err == nil:
		return tool, args, nil
	case errors.Is(err, errDeep):
		return tool, nil, &belljar.ToolError{Tool: tool, Code: "too_deep",
			Reason: fmt.Sprintf("the arguments of tool '%s' are nested more than %d levels deep", tool, cfg.MaxDepth)}
	default:
		return tool, nil, badFrame(tool, "the arguments of tool '%s' are %v", tool, err)
	}
}

func badFrame(tool, format string, args ...any) *belljar.ToolError {
	return &belljar.ToolError{Tool: tool, Code: "bad_frame", Reason: "malformed tool call: " + fmt.Sprintf(format, args...)}
}

func printable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, r := range string(b) {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// errorBody is the body of an error frame.
type errorBody struct {
	Tool   string `json:"tool"`
	Denied bool   `json:"denied"`
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

func encodeError(e *belljar.ToolError) []byte {
	b, err := json.Marshal(errorBody{e.Tool, e.Denied, e.Code, e.Reason})
	if err != nil { // three strings and a bool: not possible
		return []byte(`{"tool":"","denied":false,"code":"failed","reason":"the tool failed"}`)
	}
	return b
}
