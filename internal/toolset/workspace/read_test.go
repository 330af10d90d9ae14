package workspace

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	w, dir := open(t, map[string]string{
		"unix":   "one\ntwo\nthree\n",
		"dos":    "one\r\ntwo\r\n",
		"noend":  "one\ntwo",
		"wide":   "ééé\n日本語\n🙂",
		"bom":    "\ufeffx",
		"empty":  "",
		"latin1": "caf\xe9\n",
		"nul":    "a\x00b",
		"long":   strings.Repeat("x", 200_000) + "\nend\n",
	})
	for _, tc := range []struct {
		name, path string
		o          ReadOptions
		want       string
	}{
		{"whole file as stored", "unix", ReadOptions{}, "one\ntwo\nthree\n"},
		{"carriage returns stay", "dos", ReadOptions{}, "one\r\ntwo\r\n"},
		{"carriage returns stay in a range", "dos", ReadOptions{StartLine: 2}, "two\r\n"},
		{"missing end stays missing", "noend", ReadOptions{StartLine: 2, MaxLines: 5}, "two"},
		{"byte order mark stays", "bom", ReadOptions{}, "\ufeffx"},
		{"NUL is text", "nul", ReadOptions{}, "a\x00b"},
		{"empty", "empty", ReadOptions{}, ""},
		{"range", "unix", ReadOptions{StartLine: 2, MaxLines: 1}, "two\n"},
		{"range past the end", "unix", ReadOptions{StartLine: 9}, ""},
		{"range with the largest numbers", "unix", ReadOptions{StartLine: 3, MaxLines: int(^uint(0) >> 1)}, "three\n"},
		{"characters, not bytes", "wide", ReadOptions{MaxChars: 5}, "ééé\n日"},
		{"more characters than there are", "wide", ReadOptions{MaxChars: 500}, "ééé\n日本語\n🙂"},
		{"characters within a range", "wide", ReadOptions{StartLine: 2, MaxLines: 1, MaxChars: 2}, "日本"},
		{"line larger than the buffer", "long", ReadOptions{StartLine: 2}, "end\n"},
		{"characters of a long line", "long", ReadOptions{MaxChars: 70_000}, strings.Repeat("x", 70_000)},
		{"bad bytes replaced when asked", "latin1", ReadOptions{Replace: true}, "caf\uFFFD\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := w.Read(context.Background(), tc.path, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got %.200q, want %.200q", got, tc.want)
			}
		})
	}

	_, err := w.Read(context.Background(), "latin1", ReadOptions{})
	wantErr(t, err, `errors="replace"`)
	wantErr(t, err, "byte 3")

	write(t, filepath.Join(dir, "big"), strings.Repeat("0123456789abcde\n", 1000))
	w.caps.file = 1000
	_, err = w.Read(context.Background(), "big", ReadOptions{})
	wantErr(t, err, "has 16000 bytes")
	wantErr(t, err, "start_line")
	_, err = w.Read(context.Background(), "big", ReadOptions{StartLine: 2})
	wantErr(t, err, "max_lines")
	if got, err := w.Read(context.Background(), "big", ReadOptions{StartLine: 900, MaxLines: 3}); err != nil || len(got) != 48 {
		t.Errorf("a part of a big file: %q, %v", got, err)
	}
	w.caps.scanned = 5000
	_, err = w.Read(context.Background(), "big", ReadOptions{StartLine: 900, MaxLines: 3})
	wantErr(t, err, "gave up after 5000 bytes")
}

func TestReadIsCutOff(t *testing.T) {
	w, _ := open(t, map[string]string{"big": strings.Repeat("0123456789abcde\n", 200_000)})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.Read(ctx, "big", ReadOptions{StartLine: 199_999})
	wantErr(t, err, "cut off")
	_, err = w.Search(ctx, "x", SearchOptions{Path: "big", Glob: "**", Max: 1})
	wantErr(t, err, "cut off")
	_, err = w.Find(ctx, "*", ".", 5)
	wantErr(t, err, "cut off")
	_, err = w.List(ctx, ".")
	wantErr(t, err, "cut off")
}
