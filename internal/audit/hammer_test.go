package audit

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

func TestHammer(t *testing.T) {
	j := open(t, Config{Path: place(t), Secrets: []string{"very secret"}})
	const writers, each = 8, 150
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() {
			for i := range each {
				r := call(fmt.Sprintf("run_%d", g), "x")
				r.Args = fmt.Sprintf(`{"i":%d,"s":"very secret"}`, i)
				if err := j.Append(t.Context(), r); err != nil {
					t.Errorf("Append: %v", err)
					return
				}
				if i%40 == 0 {
					if err := j.Flush(t.Context()); err != nil {
						t.Errorf("Flush: %v", err)
					}
					got, err := j.List(t.Context(), Filter{Run: r.Run, Limit: 1})
					if err != nil || len(got) != 1 || got[0].Args != fmt.Sprintf(`{"i":%d,"s":"[redacted]"}`, i) {
						t.Errorf("after Flush %d: %+v, %v", i, got, err)
					}
					j.Checks(t.Context())
				}
			}
		})
	}
	wg.Wait()
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for g := range writers { // each writer's records in its own order
		got := list(t, j, Filter{Run: fmt.Sprintf("run_%d", g), Limit: 1000})
		if len(got) != each {
			t.Fatalf("writer %d: %d records", g, len(got))
		}
		for i, r := range got {
			if r.Args != fmt.Sprintf(`{"i":%d,"s":"[redacted]"}`, each-1-i) {
				t.Fatalf("writer %d, record %d: %s", g, i, r.Args)
			}
		}
	}
}

// Close beside Append: whatever Append took is written, the rest is refused.
func TestHammerClose(t *testing.T) {
	for range 4 {
		cfg := Config{Path: place(t)}
		j, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		taken := 0
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					err := j.Append(t.Context(), call("run_1", "x"))
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("Append: %v", err)
						return
					}
					mu.Lock()
					taken++
					mu.Unlock()
				}
			})
		}
		if err := j.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if n := len(list(t, open(t, cfg), Filter{Limit: 1e6})); n != taken {
			t.Fatalf("%d records, %d were taken", n, taken)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	j := open(b, Config{Path: place(b)})
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Append(b.Context(), call("run_1", "x")); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOneRun is what each `belljar run` pays: an existing file opened, two
// records written, the journal closed.
func BenchmarkOneRun(b *testing.B) {
	path := place(b)
	for b.Loop() {
		j, err := Open(Config{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		for range 2 {
			if err := j.Append(b.Context(), call("run_1", "x")); err != nil {
				b.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
