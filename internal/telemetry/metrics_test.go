package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lines are the lines of our own series, without those of single buckets.
func lines(t *testing.T, m *Metrics) []string {
	t.Helper()
	var b strings.Builder
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "belljar_") && !strings.Contains(line, "_bucket{") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func TestSeries(t *testing.T) {
	m := New()
	m.Active(1)
	m.Active(1)
	m.Run("script", "python", "exited", 250*time.Millisecond)
	m.Run("script", "python", "exited", 250*time.Millisecond)
	m.Run("snippet", "c", "timed_out", 5*time.Second)
	m.Run("snippet", "", "refused", 0)
	m.Active(-1)
	m.Call("read_file", "ok", 500*time.Microsecond)
	m.Call("read_file", "denied", 0)
	m.Call("", "error", 0)
	m.KeptOut(1000)
	m.KeptOut(24)
	m.KeptOut(-5)
	want := []string{
		`belljar_run_duration_seconds_sum{kind="script"} 0.5`,
		`belljar_run_duration_seconds_count{kind="script"} 2`,
		`belljar_run_duration_seconds_sum{kind="snippet"} 5`,
		`belljar_run_duration_seconds_count{kind="snippet"} 2`,
		`belljar_runs_active 1`,
		`belljar_runs_total{kind="script",lang="python",status="exited"} 2`,
		`belljar_runs_total{kind="snippet",lang="(unknown)",status="refused"} 1`,
		`belljar_runs_total{kind="snippet",lang="c",status="timed_out"} 1`,
		`belljar_tool_bytes_kept_out_total 1024`,
		`belljar_tool_call_duration_seconds_sum{tool="ptc:(unknown)"} 0`,
		`belljar_tool_call_duration_seconds_count{tool="ptc:(unknown)"} 1`,
		`belljar_tool_call_duration_seconds_sum{tool="ptc:read_file"} 0.0005`,
		`belljar_tool_call_duration_seconds_count{tool="ptc:read_file"} 2`,
		`belljar_tool_calls_total{outcome="denied",tool="ptc:read_file"} 1`,
		`belljar_tool_calls_total{outcome="error",tool="ptc:(unknown)"} 1`,
		`belljar_tool_calls_total{outcome="ok",tool="ptc:read_file"} 1`,
	}
	if diff := cmp.Diff(want, lines(t, m)); diff != "" {
		t.Error(diff)
	}
}

// Names that should not have come this far must not fill the memory.
func TestNamesAreBounded(t *testing.T) {
	m := New()
	for i := range 3 * maxNames {
		m.Call(fmt.Sprintf("tool_%d", i), "ok", 0)
	}
	m.Call("tool_0", "ok", 0) // one that is known stays known
	var series int
	got := lines(t, m)
	for _, line := range got {
		if strings.HasPrefix(line, "belljar_tool_calls_total{") {
			series++
		}
	}
	if series != maxNames+1 {
		t.Errorf("%d series of tools, want %d", series, maxNames+1)
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{
		fmt.Sprintf(`belljar_tool_calls_total{outcome="ok",tool="ptc:(other)"} %d`, 2*maxNames),
		`belljar_tool_calls_total{outcome="ok",tool="ptc:tool_0"} 2`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestNil(t *testing.T) {
	var m *Metrics
	m.Run("script", "python", "exited", 0)
	m.Call("x", "ok", 0)
	m.Active(1)
	m.KeptOut(1)
	if got := lines(t, m); got != nil {
		t.Errorf("got %q", got)
	}
}

// Two engines in one program count apart.
func TestTwo(t *testing.T) {
	a, b := New(), New()
	a.Active(1)
	want := []string{"belljar_runs_active 0", "belljar_tool_bytes_kept_out_total 0"}
	if diff := cmp.Diff(want, lines(t, b)); diff != "" {
		t.Error(diff)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestWriteFails(t *testing.T) {
	if err := New().WriteText(brokenWriter{}); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v", err)
	}
}

func TestHandler(t *testing.T) {
	m := New()
	m.Active(3)
	cases := []struct {
		method string
		status int
		body   string
	}{
		{http.MethodGet, 200, "belljar_runs_active 3\n"},
		{http.MethodGet, 200, "\ngo_goroutines "},
		{http.MethodHead, 200, ""},
		{http.MethodPost, 405, "Use GET."},
	}
	for _, c := range cases {
		t.Run(c.method, func(t *testing.T) {
			w := httptest.NewRecorder()
			m.Handler().ServeHTTP(w, httptest.NewRequest(c.method, "/metrics", nil))
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
				t.Errorf("status %d, body %.300s", w.Code, w.Body)
			}
			if c.status == 200 && w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
				t.Errorf("type %q", w.Header().Get("Content-Type"))
			}
		})
	}
}

func TestHammer(t *testing.T) {
	m := New()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				m.Active(1)
				m.Call(fmt.Sprintf("tool_%d", i), "ok", time.Millisecond)
				m.Run("script", fmt.Sprintf("lang_%d", g), "exited", time.Millisecond)
				m.KeptOut(1)
				m.Active(-1)
				if i%100 == 0 {
					if err := m.WriteText(&strings.Builder{}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	all := strings.Join(lines(t, m), "\n")
	for _, want := range []string{"belljar_runs_active 0", "belljar_tool_bytes_kept_out_total 2400", `belljar_run_duration_seconds_count{kind="script"} 2400`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func BenchmarkFirstUse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New().Active(1)
	}
}

func BenchmarkCall(b *testing.B) {
	m := New()
	b.ReportAllocs()
	for b.Loop() {
		m.Call("read_file", "ok", time.Millisecond)
	}
}
