package bridge

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belljar/belljar"
)

type handler func(ctx context.Context, tool string, args []byte) (belljar.Value, error)

func (h handler) Call(ctx context.Context, tool string, args json.RawMessage) (belljar.Value, error) {
	return h(ctx, tool, args)
}

// raw is a client without manners.
type raw struct {
	t  testing.TB
	fd int
}

func open(t testing.TB, cfg Config, h Handler) *Bridge {
	t.Helper()
	b, err := Open(context.Background(), cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// ask sends msg on the control socket and returns the answer, and the
// descriptor that came with it or -1.
func ask(t testing.TB, b *Bridge, msg string) (string, int) {
	t.Helper()
	fd := int(b.ChildFile().Fd())
	if err := unix.Sendmsg(fd, []byte(msg), nil, nil, unix.MSG_NOSIGNAL); err != nil {
		t.Fatalf("ask for a stream: %v", err)
	}
	buf, oob := make([]byte, 512), make([]byte, 64)
	n, m, _, _, err := unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		t.Fatalf("read the control socket: %v", err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:m])
	if err != nil {
		t.Fatal(err)
	}
	if len(msgs) == 0 {
		return string(buf[:n]), -1
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("descriptors %v, %v", fds, err)
	}
	return string(buf[:n]), fds[0]
}

func dial(t testing.TB, b *Bridge) *raw {
	t.Helper()
	msg, fd := ask(t, b, msgOpen)
	if msg != msgOpen || fd < 0 {
		t.Fatalf("answer %q, descriptor %d", msg, fd)
	}
	r := &raw{t, fd}
	t.Cleanup(r.close)
	return r
}

func (r *raw) close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}

func (r *raw) Read(p []byte) (int, error) {
	n, err := unix.Read(r.fd, p)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// write writes all of p or reports why not.
func (r *raw) write(p []byte) error {
	for len(p) > 0 {
		n, err := unix.SendmsgN(r.fd, p, nil, nil, unix.MSG_NOSIGNAL)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func frame(id uint32, kind byte, body string) []byte {
	var h [headLen]byte
	head{int64(len(body)), id, kind}.put(&h)
	return append(h[:], body...)
}

func callFrame(id uint32, tool, args string) []byte {
	return frame(id, kindCall, string([]byte{byte(len(tool))})+tool+args)
}

// reply reads one frame.
func (r *raw) reply() (id uint32, kind byte, body string, err error) {
	var h [headLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, 0, "", err
	}
	b := make([]byte, binary.LittleEndian.Uint32(h[:]))
	_, err = io.ReadFull(r, b)
	return binary.LittleEndian.Uint32(h[4:]), h[8], string(b), err
}

// alive checks that a call on this stream is answered.
func (r *raw) alive() {
	r.t.Helper()
	if err := r.write(callFrame(99, "echo", `{"text":"alive"}`)); err != nil {
		r.t.Fatalf("write: %v", err)
	}
	id, kind, body, err := r.reply()
	if id != 99 || kind != kindText || body != "alive" || err != nil {
		r.t.Fatalf("answer %d %d %q %v", id, kind, body, err)
	}
}

func TestMalformedFramesAreAnswered(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	cases := []struct {
		name  string
		frame []byte
		code  string
	}{
		{"empty body", frame(7, kindCall, ""), "bad_frame"},
		{"kind 0", frame(7, 0, "\x04echo{}"), "bad_frame"},
		{"kind of an answer", frame(7, kindText, "\x04echo{}"), "bad_frame"},
		{"kind 255", frame(7, 255, "\x04echo{}"), "bad_frame"},
		{"no name", callFrame(7, "", "{}"), "bad_frame"},
		{"name past the end", frame(7, kindCall, "\xffecho{}"), "bad_frame"},
		{"name too long", callFrame(7, strings.Repeat("n", 129), "{}"), "bad_frame"},
		{"line break in the name", callFrame(7, "a\nb", "{}"), "bad_frame"},
		{"NUL in the name", callFrame(7, "a\x00", "{}"), "bad_frame"},
		{"name that is no UTF-8", callFrame(7, "a\xff", "{}"), "bad_frame"},
		{"direction mark in the name", callFrame(7, "a\u202eb", "{}"), "bad_frame"},
		{"no arguments", callFrame(7, "echo", ""), "bad_frame"},
		{"no JSON", callFrame(7, "echo", "{text}"), "bad_frame"},
		{"JSON cut off", callFrame(7, "echo", `{"text":"a`), "bad_frame"},
		{"two objects", callFrame(7, "echo", "{}{}"), "bad_frame"},
		{"array", callFrame(7, "echo", "[]"), "bad_frame"},
		{"string", callFrame(7, "echo", `"a"`), "bad_frame"},
		{"null", callFrame(7, "echo", "null"), "bad_frame"},
		{"NaN", callFrame(7, "echo", `{"text":NaN}`), "bad_frame"},
		{"no UTF-8", callFrame(7, "echo", "{\"text\":\"\xff\"}"), "bad_frame"},
		{"too deep", callFrame(7, "echo", deep(257)), "too_deep"},
		{"far too deep", callFrame(7, "echo", strings.Repeat("[", 1<<20)), "bad_frame"},
		{"far too deep object", callFrame(7, "echo", deep(1<<20)), "too_deep"},
		{"too large", callFrame(7, "echo", strings.Repeat(" ", 1<<20)+"{}"), "too_large"},
	}
	b := open(t, Config{MaxFrame: 8 << 20}, &tools{})
	small := open(t, Config{MaxFrame: 64 << 10}, &tools{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			at := b
			if c.code == "too_large" {
				at = small
			}
			r := dial(t, at)
			if err := r.write(c.frame); err != nil {
				t.Fatal(err)
			}
			id, kind, body, err := r.reply()
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			var e errorBody
			if err := json.Unmarshal([]byte(body), &e); err != nil || id != 7 || kind != kindError {
				t.Fatalf("answer %d %d %q", id, kind, body)
			}
			if e.Code != c.code || e.Reason == "" || e.Denied {
				t.Errorf("error %+v, want code %s", e, c.code)
			}
			r.alive()
		})
	}
	if got, want := b.Close().Malformed, int64(len(cases)-1); got != want {
		t.Errorf("%d malformed frames counted, want %d", got, want)
	}
}

// TestOversizedFrameIsNotStored sends a frame of the largest legal length.
func TestOversizedFrameIsNotStored(t *testing.T) {
	b := open(t, Config{}, &tools{})
	r := dial(t, b)
	var h [headLen]byte
	head{hardFrame, 7, kindCall}.put(&h)
	if err := r.write(h[:]); err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<20)
	for range hardFrame / len(chunk) {
		if err := r.write(chunk); err != nil {
			t.Fatal(err)
		}
		if held := b.held.now(); held != 0 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if id, kind, body, err := r.reply(); id != 7 || kind != kindError || !strings.Contains(body, "too_large") {
		t.Fatalf("answer %d %d %q %v", id, kind, body, err)
	}
	r.alive()
}

func TestBrokenHeaderClosesThisBridgeOnly(t *testing.T) {
	b, other := open(t, Config{}, &tools{}), open(t, Config{}, &tools{})
	r, second, neighbour := dial(t, b), dial(t, b), dial(t, other)
	if err := r.write([]byte("{\"id\": 1, \"tool\": \"echo\"}\n")); err != nil { // another protocol: a length of 1.6 GiB
		t.Fatal(err)
	}
	for _, x := range []*raw{r, second} {
		if _, _, _, err := x.reply(); err == nil {
			t.Error("the stream of a broken bridge answers")
		}
	}
	neighbour.alive()
	if s := b.Close(); s.Answered != 0 {
		t.Errorf("%d calls answered", s.Answered)
	}
}

// TestCutOffFrames ends a stream in the middle of frames: only that stream ends.
func TestCutOffFrames(t *testing.T) {
	b := open(t, Config{}, &tools{})
	keeps := dial(t, b)
	whole := callFrame(1, "echo", `{"text":"`+strings.Repeat("y", 100_000)+`"}`)
	for _, n := range []int{0, 1, headLen - 1, headLen, headLen + 1, headLen + 20, bufLen - 1, bufLen, bufLen + 1, len(whole) - 1} {
		r := dial(t, b)
		if err := r.write(whole[:n]); err != nil {
			t.Fatal(err)
		}
		r.close()
	}
	keeps.alive()
	for b.streamCount() > 1 || b.held.now() > 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestControlSocketTakesNonsense(t *testing.T) {
	b := open(t, Config{}, &tools{})
	for _, msg := range []string{"x", "bj\x01", "bj\x02\x01", msgRefuse, msgOpen + "more", strings.Repeat("y", 5000)} {
		answer, fd := ask(t, b, msg)
		if !strings.HasPrefix(answer, msgRefuse) || fd >= 0 {
			t.Errorf("%q was answered %q and descriptor %d", msg, answer, fd)
		}
	}
	// An empty message, and descriptors that nobody wants.
	answer, fd := ask(t, b, "")
	if !strings.HasPrefix(answer, msgRefuse) || fd >= 0 {
		t.Errorf("an empty message was answered %q and descriptor %d", answer, fd)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	rights := unix.UnixRights(int(null.Fd()), int(null.Fd()))
	before := descriptors(t)
	if err := unix.Sendmsg(int(b.ChildFile().Fd()), []byte("x"), rights, nil, 0); err != nil {
		t.Fatal(err)
	}
	r := &raw{t, int(b.ChildFile().Fd())}
	if n, err := r.Read(make([]byte, 100)); err != nil {
		t.Fatal(n, err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before a message with two", after, before)
	}
	s := dial(t, b)
	ask(t, b, "x") // answered in turn: by now the host has closed its copy of our end
	before = descriptors(t)
	whole := callFrame(1, "echo", `{"text":"a"}`)
	if err := unix.Sendmsg(s.fd, whole, rights, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, body, err := s.reply(); body != "a" || err != nil {
		t.Fatal(body, err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before a frame with two", after, before)
	}
}
