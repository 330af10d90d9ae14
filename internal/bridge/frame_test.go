package bridge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

// dribble reads at most step bytes at a time.
type dribble struct {
	r    io.Reader
	step int
}

func (d dribble) Read(p []byte) (int, error) { return d.r.Read(p[:min(len(p), d.step)]) }

func TestFramesThroughAnyChunks(t *testing.T) {
	var in []byte
	sizes := []int{0, 1, 5, 1000, bufLen - headLen, bufLen - headLen + 1, bufLen, bufLen + 1, 2*bufLen + 3, 300_000, 0, 7}
	bodies := make([][]byte, len(sizes))
	for i, n := range sizes {
		bodies[i] = bytes.Repeat([]byte{byte('a' + i)}, n)
		in = append(in, frame(uint32(i), kindCall, string(bodies[i]))...)
	}
	for _, step := range []int{1 << 20, bufLen, 4096, 1000, 13} {
		f := newFrames(dribble{bytes.NewReader(in), step})
		for i, want := range bodies {
			h, err := f.head()
			if err != nil || h.id != uint32(i) || h.length != int64(len(want)) || h.kind != kindCall {
				t.Fatalf("step %d, frame %d: %+v, %v", step, i, h, err)
			}
			if i%3 == 2 {
				if err := f.skip(h.length); err != nil {
					t.Fatal(err)
				}
				continue
			}
			got, err := f.body(h.length)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("step %d, frame %d: %d bytes, %v", step, i, len(got), err)
			}
		}
		if _, err := f.head(); err != io.EOF {
			t.Errorf("step %d: %v at the end, want io.EOF", step, err)
		}
	}
}

func TestFramesCutOff(t *testing.T) {
	whole := frame(1, kindCall, strings.Repeat("y", 2*bufLen))
	for _, n := range []int{1, headLen - 1, headLen, headLen + 1, bufLen, bufLen + headLen + 1, len(whole) - 1} {
		f := newFrames(bytes.NewReader(whole[:n]))
		h, err := f.head()
		if err == nil {
			_, err = f.body(h.length)
		}
		if err != io.ErrUnexpectedEOF {
			t.Errorf("cut at %d: %v", n, err)
		}
		g := newFrames(bytes.NewReader(whole[:n]))
		if h, err = g.head(); err == nil {
			err = g.skip(h.length)
		}
		if err != io.ErrUnexpectedEOF {
			t.Errorf("cut at %d while skipping: %v", n, err)
		}
	}
}

// FuzzFrames feeds a stream's reader with anything, in chunks of any size. Every
// frame must come out as one call or one error, in order, until the end.
func FuzzFrames(f *testing.F) {
	cfg, err := Config{MaxFrame: 1 << 10, MaxDepth: 8, MaxName: 16}.withDefaults()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(callFrame(1, "echo", `{"text":"a"}`), uint16(100))
	f.Add(append(callFrame(1, "echo", `{`), callFrame(2, "", `{}`)...), uint16(3))
	f.Add(append(frame(1, 9, "what"), callFrame(2, "a", strings.Repeat(" ", 1<<10)+"{}")...), uint16(1000))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint16(1))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff"), uint16(9))
	f.Fuzz(func(t *testing.T, in []byte, step uint16) {
		fr := newFrames(dribble{bytes.NewReader(in), int(step) + 1})
		at := 0
		for {
			h, err := fr.head()
			if err != nil {
				broken := len(in)-at >= headLen && binary.LittleEndian.Uint32(in[at:]) > hardFrame
				short := len(in)-at < headLen
				if errors.Is(err, errBroken) != broken || !broken && !short {
					t.Fatalf("at %d of %d: %v", at, len(in), err)
				}
				return
			}
			at += headLen
			cut := int64(len(in)-at) < h.length
			if h.length > cfg.MaxFrame {
				if err := fr.skip(h.length); (err != nil) != cut {
					t.Fatalf("skip at %d: %v", at, err)
				}
			} else {
				body, err := fr.body(h.length)
				if (err != nil) != cut {
					t.Fatalf("body at %d: %v", at, err)
				}
				if !cut {
					tool, args, bad := parseCall(h.kind, body, &cfg)
					switch {
					case bad != nil && (bad.Code == "" || bad.Reason == "" || args != nil):
						t.Fatalf("error %+v", bad)
					case bad == nil && (h.kind != kindCall || tool == "" || len(tool) > 16 || len(args) < 2):
						t.Fatalf("call of %q with %q", tool, args)
					}
				}
			}
			if cut {
				return
			}
			at += int(h.length)
		}
	})
}
