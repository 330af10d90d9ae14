package engine

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/bridge"
)

// maxListed is how many calls a result lists.
const maxListed = 100

// calls counts the bridged calls of one run. Calls come from many goroutines, and
// one that ignores its context may end after the run.
type calls struct {
	made       atomic.Int64 // begun
	unrecorded atomic.Int64
	refusals   refusals

	mu     sync.Mutex
	total  belljar.ToolCalls // answered
	stats  bridge.Stats
	closed bool
}

// begin counts a call and tells how many came before it.
func (c *calls) begin() int64 { return c.made.Add(1) - 1 }

// end notes a call that was answered.
func (c *calls) end(call belljar.ToolCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.total.Count++
	if call.Denied {
		c.total.Denied++
	}
	if len(c.total.Calls) < maxListed {
		c.total.Calls = append(c.total.Calls, call)
	}
}

// close takes what the bridge counted; what comes later is not of this run.
func (c *calls) close(s bridge.Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats, c.closed = s, true
}

// sum gives the figures for the result. shown are the bytes of output that go to
// the model in place of the tools' results.
func (c *calls) sum(shown int64) belljar.ToolCalls {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.total
	out.Calls = append([]belljar.ToolCall{}, c.total.Calls...) // a list also when empty
	out.BytesKeptOut = max(0, c.stats.Bytes-shown)
	return out
}

// lost says that calls were made which the journal does not hold.
func (c *calls) lost() error {
	if n := c.unrecorded.Load(); n > 0 {
		return fmt.Errorf("%d calls are not recorded", n)
	}
	return nil
}
