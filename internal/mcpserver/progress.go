package mcpserver

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

// maxMessage bounds the text of one notification, in bytes. Of more output than
// that between two notifications the last part is shown.
const maxMessage = 4 << 10

// progress turns the output of a run into notifications, at most one per
// interval however fast the program writes. A slow client slows neither the run
// nor other calls: what it does not take in time is left out.
type progress struct {
	send  func(done int64, text string)
	every time.Duration
	wake  chan struct{}
	ended chan struct{}
	wg    sync.WaitGroup

	mu    sync.Mutex
	text  []byte // not yet sent
	done  int64  // bytes of output so far
	shown int64  // done as of the last notification
}

func newProgress(every time.Duration, send func(int64, string)) *progress {
	p := &progress{send: send, every: every, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	p.wg.Go(p.loop)
	return p
}

func (p *progress) event(e belljar.Event) {
	if e.Type != "stdout" && e.Type != "stderr" || len(e.Data) == 0 {
		return
	}
	p.mu.Lock()
	p.done += int64(len(e.Data))
	p.text = append(p.text, e.Data[max(0, len(e.Data)-maxMessage):]...)
	if cut := len(p.text) - maxMessage; cut > 0 {
		p.text = append(p.text[:0], p.text[cut:]...)
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // the loop is awake already
	}
}

func (p *progress) loop() {
	for {
		select {
		case <-p.wake:
		case <-p.ended:
			return
		}
		if done, text := p.take(); text != "" {
			p.send(done, text)
		}
		select {
		case <-time.After(p.every):
		case <-p.ended:
			return
		}
	}
}

// take gives the text to send, as whole characters, and the byte count, which
// grows from one notification to the next.
func (p *progress) take() (int64, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := len(p.text)
	for i := 1; i < utf8.UTFMax && i <= end; i++ {
		if utf8.RuneStart(p.text[end-i]) {
			if !utf8.FullRune(p.text[end-i:]) {
				end -= i // the rest of the character is still to come
			}
			break
		}
	}
	if end == 0 || p.done <= p.shown {
		return 0, ""
	}
	p.shown = p.done
	text := strings.ToValidUTF8(string(p.text[:end]), "\ufffd")
	p.text = append(p.text[:0], p.text[end:]...)
	return p.shown, text
}

// close ends the notifications: none may follow the answer, which has all of the
// output itself.
func (p *progress) close() {
	close(p.ended)
	p.wg.Wait()
}
