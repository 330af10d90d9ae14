package bridge

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/belljar/belljar"
)

// fixed answers every call with the same text.
type fixed []byte

func (f fixed) Call(context.Context, string, json.RawMessage) (belljar.Value, error) {
	return belljar.Value{Data: f}, nil
}

// calls measures b.N calls from one Python process over the real client. What
// the child measures is without its start: it is reported as calls/s.
func calls(b *testing.B, bytes, threads int) {
	out, stats := script(b, fixed(strings.Repeat("y", bytes)), Config{}, `
import sys, threading, time
n, threads = map(int, sys.argv[1:])
def work(n):
    for _ in range(n):
        tools.t(a=1)
work(20)
t = time.perf_counter()
if threads == 1:
    work(n)
else:
    each = [threading.Thread(target=work, args=(n // threads + 1,)) for _ in range(threads)]
    for x in each: x.start()
    for x in each: x.join()
print(time.perf_counter() - t)
`, strconv.Itoa(b.N), strconv.Itoa(threads))
	seconds, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(stats.Answered-20)/seconds, "calls/s")
	b.ReportMetric(seconds*1e6/float64(stats.Answered-20), "us/call")
}

func BenchmarkCall20B(b *testing.B)    { calls(b, 20, 1) }
func BenchmarkCall100KB(b *testing.B)  { calls(b, 100_000, 1) }
func BenchmarkCall10MB(b *testing.B)   { calls(b, 10_000_000, 1) }
func BenchmarkThreads20B(b *testing.B) { calls(b, 20, 16) }

// BenchmarkPipelined is the host alone: a client that sends 64 calls at once.
func BenchmarkPipelined(b *testing.B) {
	r := dial(b, open(b, Config{}, fixed("yyyyyyyyyyyyyyyyyyyy")))
	var batch []byte
	for id := range uint32(64) {
		batch = append(batch, callFrame(id, "t", `{"a":1}`)...)
	}
	in := newFrames(r)
	b.ReportAllocs()
	for done := 0; done < b.N; done += 64 {
		if err := r.write(batch); err != nil {
			b.Fatal(err)
		}
		for range 64 {
			h, err := in.head()
			if err == nil {
				err = in.skip(h.length)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
