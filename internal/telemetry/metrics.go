package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// maxNames bounds the values of one label.
const maxNames = 200

const (
	unknown = "(unknown)" // the caller knew no name
	other   = "(other)"   // the label has too many already
)

// Metrics counts. Its methods may be called by many goroutines. A nil *Metrics
// counts nothing, for programs that never show what was counted.
type Metrics struct {
	series func() *series
}

// series is what is made at the first use.
type series struct {
	registry *prometheus.Registry

	runs     *prometheus.CounterVec
	runTime  *prometheus.HistogramVec
	active   prometheus.Gauge
	calls    *prometheus.CounterVec
	callTime *prometheus.HistogramVec
	keptOut  prometheus.Counter

	kinds, langs, statuses, tools, outcomes names
}

// New makes a Metrics; it costs nothing until it is used.
func New() *Metrics { return &Metrics{series: sync.OnceValue(newSeries)} }

func newSeries() *series {
	s := &series{
		registry: prometheus.NewRegistry(),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belljar_runs_total", Help: "Runs that ended, refused ones too."}, []string{"kind", "lang", "status"}),
		// From a warm start to the longest ordinary time limit.
		runTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "belljar_run_duration_seconds", Help: "Wall time of runs, from admission to the result.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}}, []string{"kind"}),
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "belljar_runs_active", Help: "Runs that were admitted and have not ended."}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belljar_tool_calls_total", Help: "Bridged tool calls answered, denied ones too."}, []string{"tool", "outcome"}),
		// From a file in the cache to a slow service.
		callTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "belljar_tool_call_duration_seconds", Help: "Time tools took to answer bridged calls.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30}}, []string{"tool"}),
		keptOut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belljar_tool_bytes_kept_out_total", Help: "Bytes of tool results that scripts used and the model did not have to read."}),
	}
	s.registry.MustRegister(s.runs, s.runTime, s.active, s.calls, s.callTime, s.keptOut,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Run counts a run that ended: its kind ("script", "snippet"), the name of its
// language, its status, and the time from admission to the result.
func (m *Metrics) Run(kind, lang, status string, wall time.Duration) {
	if m == nil {
		return
	}
	s := m.series()
	kind = s.kinds.bound(kind)
	s.runs.WithLabelValues(kind, s.langs.bound(lang), s.statuses.bound(status)).Inc()
	s.runTime.WithLabelValues(kind).Observe(wall.Seconds())
}

// Active adds delta to the number of runs under way: 1 at the start of a run, -1
// at its end.
func (m *Metrics) Active(delta int) {
	if m == nil {
		return
	}
	m.series().active.Add(float64(delta))
}

// Call counts a bridged call: the tool's name without "ptc:", "" when the toolset
// has no such tool, the outcome as the journal has it, and how long it took.
func (m *Metrics) Call(tool, outcome string, d time.Duration) {
	if m == nil {
		return
	}
	s := m.series()
	tool = "ptc:" + s.tools.bound(tool)
	s.calls.WithLabelValues(tool, s.outcomes.bound(outcome)).Inc()
	s.callTime.WithLabelValues(tool).Observe(d.Seconds())
}

// KeptOut counts bytes that a run kept out of the model's context. A number that
// is not positive counts nothing.
func (m *Metrics) KeptOut(bytes int64) {
	if m == nil || bytes <= 0 {
		return
	}
	m.series().keptOut.Add(float64(bytes))
}

// names are the values a label has had.
type names struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// bound returns the name, or what stands for it when it is one too many.
func (n *names) bound(name string) string {
	if name == "" {
		return unknown
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[name]; ok {
		return name
	}
	if len(n.seen) >= maxNames {
		return other
	}
	if n.seen == nil {
		n.seen = make(map[string]struct{})
	}
	n.seen[name] = struct{}{}
	return name
}
