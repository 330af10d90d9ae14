package bridge

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestFloodWithoutReading calls as fast as it can and reads no answer. The
// bridge stops reading; what it holds stays bounded, and Close is not held up.
func TestFloodWithoutReading(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
	}{{"small results", 20}, {"large results", 1 << 20}, {"errors", -1}} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int64
			h := handler(func(context.Context, string, []byte) (belljar.Value, error) {
				asked.Add(1)
				return belljar.Value{Data: make([]byte, max(c.size, 0))}, nil
			})
			cfg := Config{MaxHeld: 8 << 20}
			b := open(t, cfg, h)
			f := callFrame(1, "echo", "{}")
			if c.size < 0 {
				f = callFrame(1, "echo", "[]")
			}
			var wg sync.WaitGroup
			for range 4 {
				r := dial(t, b)
				if err := unix.SetNonblock(r.fd, true); err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					full := 0
					for full < 50 {
						n, err := unix.SendmsgN(r.fd, f, nil, nil, unix.MSG_NOSIGNAL)
						switch {
						case err == unix.EAGAIN || err == nil && n < len(f):
							full++
							time.Sleep(time.Millisecond)
						case err != nil:
							t.Errorf("write: %v", err)
							return
						default:
							full = 0
						}
						if n > 0 && n < len(f) {
							return // the socket is full in the middle of a frame
						}
					}
				})
			}
			wg.Wait()
			if held := b.held.now(); held > 8<<20 {
				t.Errorf("%d bytes are held", held)
			}
			if n := len(b.slots); n > 64 {
				t.Errorf("%d calls in flight", n)
			}
			stats := b.Close()
			if stats.Answered+stats.CutOff != asked.Load() {
				t.Errorf("%+v do not add up to %d calls", stats, asked.Load())
			}
		})
	}
}

// TestBacklog makes the answers of one stream pile up beyond what may be held.
func TestBacklog(t *testing.T) {
	const each = 3 << 20
	b := open(t, Config{MaxHeld: 4 * each}, handler(func(context.Context, string, []byte) (belljar.Value, error) {
		time.Sleep(20 * time.Millisecond) // all are running before the first answer is there
		return belljar.Value{Data: make([]byte, each)}, nil
	}))
	r := dial(t, b)
	for id := range uint32(30) {
		if err := r.write(callFrame(id, "big", "{}")); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	kinds := map[byte]int{}
	seen := map[uint32]bool{}
	for range 30 {
		id, kind, body, err := r.reply()
		if err != nil {
			t.Fatal(err)
		}
		if kind == kindError && !strings.Contains(body, `"backlog"`) {
			t.Errorf("error %s", body)
		}
		kinds[kind]++
		seen[id] = true
	}
	if len(seen) != 30 || kinds[kindText] == 0 {
		t.Errorf("%d calls answered, by kind: %v", len(seen), kinds)
	}
	for b.held.now() != 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestCloseDoesNotWaitForTheDeaf closes while handlers ignore their context.
func TestCloseDoesNotWaitForTheDeaf(t *testing.T) {
	for _, n := range []int{1, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			release := make(chan struct{})
			var asked, done atomic.Int64
			h := handler(func(ctx context.Context, _ string, _ []byte) (belljar.Value, error) {
				asked.Add(1)
				defer done.Add(1)
				<-release
				if !errors.Is(context.Cause(ctx), ErrClosed) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				return belljar.Value{Data: []byte("late")}, nil
			})
			b := open(t, Config{Grace: 10 * time.Millisecond}, h)
			r := dial(t, b)
			for id := range uint32(n) {
				if err := r.write(callFrame(id, "deaf", "{}")); err != nil {
					t.Fatal(err)
				}
			}
			for asked.Load() < int64(n) {
				time.Sleep(time.Millisecond)
			}
			before := descriptors(t)
			if diff := cmp.Diff(Stats{CutOff: int64(n)}, b.Close()); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
			if after := descriptors(t); after >= before {
				t.Errorf("%d descriptors after Close, %d before", after, before)
			}
			if _, _, _, err := r.reply(); err == nil {
				t.Error("an answer after Close")
			}
			close(release)
			for done.Load() < int64(n) {
				time.Sleep(time.Millisecond)
			}
			if _, _, body, err := r.reply(); err == nil {
				t.Errorf("the late answer %q was sent", body)
			}
			if diff := cmp.Diff(Stats{CutOff: int64(n)}, b.Close()); diff != "" {
				t.Errorf("stats after the late answers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunIsCancelled ends the context that the bridge was opened with.
func TestRunIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the time is up")
	cause := make(chan error, 1)
	asked := make(chan struct{})
	b, err := Open(ctx, Config{}, handler(func(ctx context.Context, _ string, _ []byte) (belljar.Value, error) {
		close(asked)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return belljar.Value{}, ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := dial(t, b)
	if err := r.write(callFrame(1, "wait", "{}")); err != nil {
		t.Fatal(err)
	}
	<-asked
	cancel(why)
	if got := <-cause; got != why {
		t.Errorf("cause %v, want %v", got, why)
	}
	if _, _, _, err := r.reply(); err == nil {
		t.Error("an answer after the end")
	}
	if diff := cmp.Diff(Stats{CutOff: 1}, b.Close()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// TestOneSlowCallHoldsUpNobody has a slow call first, which its reader runs
// itself, and checks that those behind it are read.
func TestOneSlowCallHoldsUpNobody(t *testing.T) {
	release := make(chan struct{})
	b := open(t, Config{}, handler(func(_ context.Context, tool string, _ []byte) (belljar.Value, error) {
		if tool == "slow" {
			<-release
		}
		return belljar.Value{Data: []byte(tool)}, nil
	}))
	r := dial(t, b)
	for round := range 3 {
		id := uint32(round * 100)
		if err := r.write(callFrame(id, "slow", "{}")); err != nil {
			t.Fatal(err)
		}
		for k := range uint32(80) { // more than the calls that stay spread
			if err := r.write(callFrame(id+1+k, "quick", "{}")); err != nil {
				t.Fatal(err)
			}
			if got, _, body, err := r.reply(); got != id+1+k || body != "quick" || err != nil {
				t.Fatalf("answer %d %q %v", got, body, err)
			}
		}
		release <- struct{}{}
		if got, _, body, err := r.reply(); got != id || body != "slow" || err != nil {
			t.Fatalf("answer %d %q %v", got, body, err)
		}
	}
}

// TestHammer has many raw clients of one bridge send, hang up and be closed upon.
func TestHammer(t *testing.T) {
	for round := range 6 {
		b := open(t, Config{Grace: 5 * time.Second}, &tools{})
		var wg sync.WaitGroup
		var late atomic.Bool
		for n := range 12 {
			r := dial(t, b)
			wg.Go(func() {
				big := strings.Repeat("y", 1000*n*n)
				for i := range uint32(150) {
					tool, args := "echo", `{"text":"`+big+`"}`
					if i%16 == 3 {
						tool, args = "slow", `{"seconds":0.003}`
					}
					if err := r.write(callFrame(i, tool, args)); err != nil {
						break
					}
					if n == 11 && i == 100 {
						unix.Shutdown(r.fd, unix.SHUT_RDWR) // gone in the middle
						break
					}
					if i%4 != 3 {
						continue
					}
					for range 4 {
						if _, kind, _, err := r.reply(); err != nil {
							if n != 11 && !late.Load() {
								t.Errorf("client %d: %v", n, err)
							}
							return
						} else if kind != kindText {
							t.Errorf("client %d: kind %d", n, kind)
						}
					}
				}
			})
		}
		if round%2 == 0 {
			time.Sleep(time.Duration(round) * 5 * time.Millisecond)
			late.Store(true)
			b.Close()
		}
		wg.Wait()
		b.Close()
	}
}
