package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/belljar/belljar/internal/toolchain"
	"github.com/belljar/belljar/languages"
)

// world is an engine among fakes. A test changes what it is about.
type world struct {
	t       *testing.T
	cfg     Config
	policy  policy.Config
	program func(ctx context.Context, s *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error)
	tool    func(ctx context.Context, name string, args json.RawMessage) (belljar.Value, error)
	find    func(ctx context.Context, l *language.Language) (*toolchain.Toolchain, error)
	open    func() error            // of a bridge
	cancel  context.CancelCauseFunc // ends the run's context, where a test needs it
	journal *journal
	metrics *metrics
	log     *syncBuffer

	mu       sync.Mutex
	specs    []*sandbox.Spec
	handlers map[*os.File]bridge.Handler
	bridges  int // open now
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, journal: &journal{}, metrics: &metrics{}, log: &syncBuffer{}, handlers: map[*os.File]bridge.Handler{}}
	w.program = prints("")
	w.tool = func(_ context.Context, name string, args json.RawMessage) (belljar.Value, error) {
		return belljar.Value{Data: fmt.Appendf(nil, "%s%s", name, args)}, nil
	}
	w.find = func(context.Context, *language.Language) (*toolchain.Toolchain, error) {
		return &toolchain.Toolchain{Lang: "python", Version: "3.11.2", Path: "/usr/bin/python3.11"}, nil
	}
	w.open = func() error { return nil }
	return w
}

func (w *world) engine() *Engine {
	w.t.Helper()
	registry, err := language.Open(languages.FS)
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := policy.New(w.policy)
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := New(w.cfg, Parts{Languages: registry, Toolchains: w, Sandbox: w, Policy: p, Tools: tools{w}, Journal: w.journal,
		OpenBridge: w.openBridge, Metrics: w.metrics, Log: slog.New(slog.NewTextHandler(w.log, nil))})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// run runs a request and checks what holds for every answer.
func (w *world) run(ctx context.Context, req *belljar.Request) *belljar.Result {
	w.t.Helper()
	res, err := w.engine().Run(ctx, req, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.checkResult(res)
	return res
}

func (w *world) checkResult(res *belljar.Result) {
	w.t.Helper()
	if (res.Error == nil) != res.OK {
		w.t.Errorf("ok = %v with error %v", res.OK, res.Error)
	}
	if (res.Refusal != nil) != (res.Status == belljar.StatusRefused) || (res.Fault != "") != (res.Status == belljar.StatusFailed) {
		w.t.Errorf("status %s, refusal %v, fault %q", res.Status, res.Refusal, res.Fault)
	}
	if len(res.ID) != len("run_")+20 || res.Status == "" || res.Stage == "" {
		w.t.Errorf("id %q, status %q, stage %q", res.ID, res.Status, res.Stage)
	}
	text, err := json.Marshal(res)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, list := range []string{"denials", "findings", "artifacts", "protections", "missing", "calls"} {
		if strings.Contains(string(text), `"`+list+`":null`) {
			w.t.Errorf("%s is null in %s", list, text)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bridges != 0 || w.metrics.active != 0 {
		w.t.Errorf("%d bridges are open, %d runs are active", w.bridges, w.metrics.active)
	}
}

func (w *world) Find(ctx context.Context, l *language.Language) (*toolchain.Toolchain, error) {
	return w.find(ctx, l)
}

func (w *world) Runnable(_ context.Context, all []*language.Language) []string {
	var out []string
	for _, l := range all {
		out = append(out, l.Name)
	}
	return out
}

func (w *world) Run(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
	w.mu.Lock()
	w.specs = append(w.specs, s)
	h := w.handlers[s.Bridge]
	w.mu.Unlock()
	return w.program(ctx, s, h)
}

func (w *world) openBridge(_ context.Context, h bridge.Handler) (Bridge, error) {
	if err := w.open(); err != nil {
		return nil, err
	}
	b := &fakeBridge{w: w, file: new(os.File)}
	w.mu.Lock()
	w.handlers[b.file], w.bridges = &countingHandler{Handler: h, b: b}, w.bridges+1
	w.mu.Unlock()
	return b, nil
}

type fakeBridge struct {
	w     *world
	file  *os.File
	mu    sync.Mutex
	stats bridge.Stats
}

func (b *fakeBridge) ChildFile() *os.File { return b.file }

func (b *fakeBridge) Close() bridge.Stats {
	b.w.mu.Lock()
	b.w.bridges--
	b.w.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

// countingHandler counts bytes as a bridge does.
type countingHandler struct {
	bridge.Handler
	b *fakeBridge
}

func (c *countingHandler) Call(ctx context.Context, tool string, args json.RawMessage) (belljar.Value, error) {
	v, err := c.Handler.Call(ctx, tool, args)
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.b.stats.Answered++
	c.b.stats.Bytes += int64(len(v.Data))
	return v, err
}

type tools struct{ w *world }

func (tools) Find(_ context.Context, name string) (belljar.Tool, bool) {
	switch name {
	case "read_file", "list_dir", "drop_table", "execute_code":
		return belljar.Tool{Name: name, Forms: []string{name}}, true
	}
	return belljar.Tool{}, false
}

func (t tools) Call(ctx context.Context, name string, args json.RawMessage) (belljar.Value, error) {
	return t.w.tool(ctx, name, args)
}

// journal keeps records; what is appended is only safe after a flush.
type journal struct {
	mu                   sync.Mutex
	ready, append, flush error
	panics               bool
	pending, safe        []belljar.Record
}

func (j *journal) Ready(context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ready
}

func (j *journal) Append(_ context.Context, r belljar.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.panics {
		panic("the journal broke")
	}
	if j.append == nil {
		j.pending = append(j.pending, r)
	}
	return j.append
}

func (j *journal) Flush(context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.flush == nil {
		j.safe, j.pending = append(j.safe, j.pending...), nil
	}
	return j.flush
}

func (j *journal) records() []belljar.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]belljar.Record{}, j.safe...)
}

type metrics struct {
	mu      sync.Mutex
	lines   []string
	active  int
	keptOut int64
}

func (m *metrics) Active(delta int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active += delta
}

func (m *metrics) KeptOut(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keptOut += n
}

func (m *metrics) Run(kind, lang, status string, _ time.Duration) { m.add("run", kind, lang, status) }
func (m *metrics) Call(tool, outcome string, _ time.Duration)     { m.add("call", tool, outcome) }

func (m *metrics) add(words ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, strings.Join(words, " "))
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Programs.

type program = func(ctx context.Context, s *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error)

func prints(text string) program {
	return func(_ context.Context, s *sandbox.Spec, _ bridge.Handler) (*sandbox.Exit, error) {
		_, err := s.Stdout.Write([]byte(text))
		return good(), err
	}
}

func exits(cause sandbox.Cause, wait syscall.WaitStatus) program {
	return func(context.Context, *sandbox.Spec, bridge.Handler) (*sandbox.Exit, error) {
		x := good()
		x.Cause, x.Wait = cause, wait
		return x, nil
	}
}

func fails(err error) program {
	return func(context.Context, *sandbox.Spec, bridge.Handler) (*sandbox.Exit, error) { return nil, err }
}

func good() *sandbox.Exit {
	return &sandbox.Exit{
		Usage:     belljar.Usage{WallMS: 7, CPUMS: 4, PeakMemoryBytes: 9e6, Processes: 1},
		Isolation: belljar.Isolation{Level: belljar.LevelNamespaces, Protections: []string{"userns"}},
		Start:     2 * time.Millisecond,
	}
}

func script(source string) *belljar.Request {
	return &belljar.Request{Kind: belljar.KindScript, Source: source, Caller: "test"}
}

func ptr[T any](v T) *T { return &v }

var errDisk = errors.New("disk full")
