package output

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/google/go-cmp/cmp"
)

func TestCaptureText(t *testing.T) {
	tests := []struct {
		name       string
		head, tail int
		writes     []string
		want       string
		info       belljar.Output
	}{
		{"nothing", 4, 4, nil, "", belljar.Output{}},
		{"fits the head", 4, 4, []string{"ab", "cd"}, "abcd", belljar.Output{Bytes: 4}},
		{"fits both", 4, 4, []string{"abcde", "fgh"}, "abcdefgh", belljar.Output{Bytes: 8}},
		{"one byte over", 4, 4, []string{"abcdefghi"}, "abcd\n…[1 bytes left out here]…\nfghi", belljar.Output{Bytes: 9, Truncated: true}},
		{"the ring turns", 2, 3, []string{"ab", "cde", "f", "gh", "i"}, "ab\n…[4 bytes left out here]…\nghi", belljar.Output{Bytes: 9, Truncated: true}},
		{"one write longer than all", 2, 3, []string{strings.Repeat("x", 100) + "yz"}, "xx\n…[97 bytes left out here]…\nxyz", belljar.Output{Bytes: 102, Truncated: true}},
		{"a character in two writes", 8, 8, []string{"caf\xc3", "\xa9"}, "café", belljar.Output{Bytes: 5}},
		{"a character over the seam", 4, 4, []string{"caf\xc3\xa9!"}, "café!", belljar.Output{Bytes: 6}},
		{"the cut ends whole", 4, 2, []string{"caféxyz"}, "caf\n…[3 bytes left out here]…\nyz", belljar.Output{Bytes: 8, Truncated: true}},
		{"the tail starts whole", 2, 3, []string{"abcd日x"}, "ab\n…[5 bytes left out here]…\nx", belljar.Output{Bytes: 8, Truncated: true}},
		{"invalid bytes", 64, 4, []string{"A\xff\xfe\x80\xc3(B\n"}, "A\ufffd\ufffd\ufffd\ufffd(B\n", belljar.Output{Bytes: 8}},
		{"NUL and CRLF stay", 64, 4, []string{"a\x00b\x01\x7fc\r\n"}, "a\x00b\x01\x7fc\r\n", belljar.Output{Bytes: 8}},
		{"only continuation bytes", 3, 3, []string{"\x80\x80\x80\x80\x80\x80\x80"}, "\ufffd\ufffd\ufffd\n…[4 bytes left out here]…\n", belljar.Output{Bytes: 7, Truncated: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCapture(tt.head, tt.tail)
			for _, w := range tt.writes {
				if n, err := c.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			text, info := c.Text()
			if diff := cmp.Diff(tt.want, text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.info, info); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCaptureMemory(t *testing.T) {
	c := NewCapture(0, 0)
	if _, err := c.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if got := cap(c.head) + cap(c.tail); got > firstBlock {
		t.Errorf("a small stream holds %d bytes", got)
	}
	line := bytes.Repeat([]byte("x"), 7919)
	for range 1000 {
		if _, err := c.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if got := cap(c.head) + cap(c.tail); got > DefaultHead+DefaultTail {
		t.Errorf("a flood holds %d bytes", got)
	}
	if text, info := c.Text(); len(text) > DefaultHead+DefaultTail+100 || info.Bytes != 7919*1000+6 {
		t.Errorf("kept %d bytes of text, counted %d", len(text), info.Bytes)
	}
}

// Writers, and readers of a capture that is still being written.
func TestCaptureHammer(t *testing.T) {
	c := NewCapture(100, 100)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 500 {
				fmt.Fprintf(c, "%d-%d é\n", w, i)
			}
		})
		wg.Go(func() {
			var last int64
			for range 200 {
				text, info := c.Text()
				if !utf8.ValidString(text) {
					t.Error("text is not UTF-8")
				}
				if info.Bytes < last {
					t.Errorf("count went from %d to %d", last, info.Bytes)
				}
				last = info.Bytes
			}
		})
	}
	wg.Wait()
	want := int64(0)
	for w := range 4 {
		for i := range 500 {
			want += int64(len(fmt.Sprintf("%d-%d é\n", w, i)))
		}
	}
	if got := c.Bytes(); got != want {
		t.Errorf("counted %d bytes, want %d", got, want)
	}
}

func FuzzCapture(f *testing.F) {
	f.Add([]byte("plain"), 3, 4, 2)
	f.Add([]byte("caf\xc3\xa9 \xe6\x97\xa5\xff\x80"), 1, 1, 1)
	f.Add(bytes.Repeat([]byte("日"), 40), 7, 5, 3)
	f.Fuzz(func(t *testing.T, data []byte, head, tail, step int) {
		head, tail, step = 1+abs(head)%64, 1+abs(tail)%64, 1+abs(step)%32
		c := NewCapture(head, tail)
		for i := 0; i < len(data); i += step {
			_, _ = c.Write(data[i:min(i+step, len(data))])
		}
		text, info := c.Text()
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		if info.Bytes != int64(len(data)) {
			t.Fatalf("counted %d of %d", info.Bytes, len(data))
		}
		if info.Truncated != (len(data) > head+tail) {
			t.Fatalf("truncated = %v for %d bytes in %d+%d", info.Truncated, len(data), head, tail)
		}
		if !info.Truncated && utf8.Valid(data) && text != string(data) {
			t.Fatalf("got %q, want %q", text, data)
		}
		if info.Truncated && utf8.Valid(data) && strings.ContainsRune(text, utf8.RuneError) && !bytes.ContainsRune(data, utf8.RuneError) {
			t.Fatalf("a character was cut: %q", text)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func BenchmarkCaptureSmall(b *testing.B) {
	p := []byte("hello\n")
	for b.Loop() {
		c := NewCapture(0, 0)
		_, _ = c.Write(p)
		_, _ = c.Text()
	}
}

func BenchmarkCaptureFlood(b *testing.B) {
	p := bytes.Repeat([]byte("x"), 64<<10)
	c := NewCapture(0, 0)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		_, _ = c.Write(p)
	}
}
