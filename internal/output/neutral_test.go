package output

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNeutral(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "hello\tworld\n", "hello\tworld\n"},
		{"text of many scripts", "café ☕ 日本語 👩‍🚀\n", "café ☕ 日本語 👩‍🚀\n"},
		{"clear screen", "a\x1b[2Jb", "a␛[2Jb"},
		{"title", "\x1b]0;title\x07", "␛]0;title␇"},
		{"clipboard", "\x1b]52;c;aGk=\x1b\\", "␛]52;c;aGk=␛\\"},
		{"eight-bit sequence as a byte", "\x9b31m", `\x9b31m`},
		{"eight-bit sequence as a character", "\u009b31m", `\u009b31m`},
		{"overwriting", "over\rwritten", "over␍written"},
		{"line end of the network", "a\r\nb\r\n", "a\r\nb\r\n"},
		{"carriage return at the end", "a\r", "a␍"},
		{"two carriage returns", "a\r\r\n", "a␍\r\n"},
		{"backspace, delete and NUL", "a\b\x7f\x00", "a␈␡␀"},
		{"override", "\u202egnp.exe", `\u202egnp.exe`},
		{"isolates and marks", "\u2066\u2069\u200f\u061c", `\u2066\u2069\u200f\u061c`},
		{"line separator", "a\u2028b", `a\u2028b`},
		{"tags", "a\U000e0041b", `a\U000e0041b`},
		{"invalid bytes", "a\xff\xc3(", `a\xff\xc3(`},
		{"unfinished at the end", "a\xe6\x97", `a\xe6\x97`},
		{"overlong escape", "\xc0\x9b", `\xc0\x9b`},
		{"surrogate", "\xed\xa0\x80", `\xed\xa0\x80`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for step := 1; step <= len(tt.in); step++ {
				var b bytes.Buffer
				n := Neutral(&b)
				for i := 0; i < len(tt.in); i += step {
					part := tt.in[i:min(i+step, len(tt.in))]
					if k, err := n.Write([]byte(part)); k != len(part) || err != nil {
						t.Fatalf("Write = %d, %v", k, err)
					}
				}
				if err := n.Close(); err != nil {
					t.Fatal(err)
				}
				if b.String() != tt.want {
					t.Errorf("in steps of %d: got %q, want %q", step, b.String(), tt.want)
				}
			}
			if got := NeutralString(tt.in); got != tt.want {
				t.Errorf("NeutralString = %q, want %q", got, tt.want)
			}
		})
	}
}

type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestNeutralError(t *testing.T) {
	n := Neutral(broken{})
	if k, err := n.Write([]byte("x")); k != 0 || !errors.Is(err, errBroken) {
		t.Errorf("Write = %d, %v", k, err)
	}
	n = Neutral(broken{})
	if _, err := n.Write([]byte("\r")); err != nil {
		t.Errorf("a held byte was written: %v", err)
	}
	if err := n.Close(); !errors.Is(err, errBroken) {
		t.Errorf("Close = %v", err)
	}
}

func TestNeutralLong(t *testing.T) {
	in := strings.Repeat("日\x1b", chunk) // characters lie across the pieces
	var b bytes.Buffer
	n := Neutral(&b)
	if k, err := n.Write([]byte(in)); k != len(in) || err != nil {
		t.Fatalf("Write = %d, %v", k, err)
	}
	if want := strings.Repeat("日␛", chunk); b.String() != want {
		t.Error("text changed")
	}
	if cap(n.out) > 16*chunk {
		t.Errorf("holds %d bytes", cap(n.out))
	}
}

func FuzzNeutral(f *testing.F) {
	f.Add([]byte("plain \x1b[2J\x9b31m\r\n\u202e"), 3)
	f.Add([]byte("\xf0\x9f\x91\xa9\xe2\x80"), 1)
	f.Add([]byte("\xe2\x80\x1b\xe2\x80\xae"), 2)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		step = 1 + abs(step)%16
		var whole, pieces bytes.Buffer
		n := Neutral(&whole)
		_, _ = n.Write(data)
		_ = n.Close()
		n = Neutral(&pieces)
		for i := 0; i < len(data); i += step {
			_, _ = n.Write(data[i:min(i+step, len(data))])
		}
		_ = n.Close()
		if !bytes.Equal(whole.Bytes(), pieces.Bytes()) {
			t.Fatalf("whole %q, in pieces %q", whole.Bytes(), pieces.Bytes())
		}
		text := whole.String()
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		for i, r := range text {
			crlf := r == '\r' && strings.HasPrefix(text[i:], "\r\n")
			if hidden(r) || r == 0x7f || r < 0x20 && r != '\n' && r != '\t' && !crlf {
				t.Fatalf("%U came through in %q", r, text)
			}
		}
	})
}
