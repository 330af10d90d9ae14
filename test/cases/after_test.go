package cases

import (
	"runtime"
	"strconv"
	"strings"
)

// afterwards are the sentences of after. Each is looked at in one way.
var afterwards = map[string]watch{
	"no process whose arguments contain the nonce exists on the host":                              harms["survive"],
	"no process of the run is left in state T":                                                     harms["survive"],
	"the space is free again after the reply":                                                      harms["disk_left"],
	"the next run works and nothing of this one is left":                                           harms["disk_left"],
	"engine memory is back to its usual size":                                                      memoryIsBounded,
	"engine memory has grown by no more than a few times the output limit":                         memoryIsBounded,
	"a one-line run started at the same time finishes within twice its usual time plus one second": beside("print('beside')", "beside\n"),
	"a run of another client started meanwhile is able to fork":                                    beside("import os\nprint(os.waitpid(os.fork() or os._exit(0), 0)[1], flush=True)", "0\n"),
	"the tool was told to stop, its late answer is dropped, and the audit has the call as cut off": func(p *play) func(*reply) {
		return func(r *reply) {
			if p.b.tools.stopped.Load() == 0 || p.b.tools.finished.Load() > 0 {
				p.Errorf("%d calls of slow were told to stop, %d went on to their end", p.b.tools.stopped.Load(), p.b.tools.finished.Load())
			}
			for _, record := range p.records(r) {
				if record.Name == "ptc:slow" && record.Outcome == "cut_off" {
					return
				}
			}
			p.Errorf("the journal does not have the call as cut off: %s", p.journal(r))
		}
	},
}

// mostHeap is far above what the engine of this test keeps, and below what a frame
// or a flood that was kept whole would add to it again and again.
const mostHeap = 256 << 20

func memoryIsBounded(p *play) func(*reply) {
	return func(*reply) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapAlloc > mostHeap {
			p.Errorf("the engine holds %d MiB", m.HeapAlloc>>20)
		}
	}
}

// beside runs a small program at the same time. When it ends is not measured: a
// machine under load must not fail the test.
func beside(source, want string) watch {
	return func(p *play) func(*reply) {
		done := make(chan string, 1)
		go func() { done <- p.line(source) }()
		return func(*reply) {
			if out := <-done; out != want {
				p.Errorf("the run beside it printed %q", out)
			}
		}
	}
}

// atoi reads a number of the kernel's, 0 if it is none.
func atoi(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}
