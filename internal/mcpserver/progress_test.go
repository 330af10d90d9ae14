package mcpserver

import (
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

func TestProgressTake(t *testing.T) {
	out := func(s string) belljar.Event { return belljar.Event{Type: "stdout", Data: []byte(s)} }
	tests := []struct {
		name   string
		events []belljar.Event
		want   string
		done   int64
	}{
		{"nothing", nil, "", 0},
		{"other events", []belljar.Event{{Type: "call"}, {Type: "stdout"}}, "", 0},
		{"joined", []belljar.Event{out("a"), out("b"), {Type: "stderr", Data: []byte("c")}}, "abc", 3},
		{"half a character waits", []belljar.Event{out("a\xc3")}, "a", 2},
		{"only half a character", []belljar.Event{out("\xc3")}, "", 0},
		{"no text at all", []belljar.Event{out("\xff\xfe.")}, "\ufffd.", 3},
		{"much", []belljar.Event{out(strings.Repeat("x", 3*maxMessage))}, strings.Repeat("x", maxMessage), 3 * maxMessage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &progress{wake: make(chan struct{}, 1)}
			for _, e := range tt.events {
				p.event(e)
			}
			done, text := p.take()
			if done != tt.done || text != tt.want {
				t.Errorf("got %d %q, want %d %q", done, text, tt.done, tt.want)
			}
			if done, text := p.take(); text != "" {
				t.Errorf("the same again: %d %q", done, text)
			}
		})
	}
}

func TestProgressHammer(t *testing.T) {
	var mu sync.Mutex
	var last int64
	p := newProgress(time.Microsecond, func(done int64, text string) {
		mu.Lock()
		defer mu.Unlock()
		if done <= last || !utf8.ValidString(text) {
			t.Errorf("%d after %d: %q", done, last, text)
		}
		last = done
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				p.event(belljar.Event{Type: "stdout", Data: []byte("añb")})
			}
		})
	}
	wg.Wait()
	p.close()
	mu.Lock()
	before := last
	mu.Unlock()
	p.event(belljar.Event{Type: "stdout", Data: []byte("late")})
	mu.Lock()
	defer mu.Unlock()
	if last != before {
		t.Error("a notification after close")
	}
}
