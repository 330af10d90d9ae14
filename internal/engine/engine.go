package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/output"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/belljar/belljar/internal/toolchain"
)

// Config of the engine. The zero value is the documented default.
type Config struct {
	Limits LimitsConfig
	// Minimum is the weakest isolation level that a run may get; a request can
	// only raise it. Empty: namespaces.
	Minimum belljar.Level
	// AuditOptional lets a run go on when the journal cannot record it; the result
	// says so.
	AuditOptional bool
}

// Parts are what the engine joins. All but Metrics and Log are required.
type Parts struct {
	Languages  *language.Registry
	Toolchains Toolchains
	Sandbox    Sandbox
	Policy     Policy
	Tools      Tools
	Journal    Journal
	OpenBridge func(context.Context, bridge.Handler) (Bridge, error)
	Metrics    Metrics
	Log        *slog.Logger
}

// Toolchains finds what runs a language.
type Toolchains interface {
	Find(context.Context, *language.Language) (*toolchain.Toolchain, error)
	Runnable(context.Context, []*language.Language) []string
}

// Sandbox runs one program.
type Sandbox interface {
	Run(context.Context, *sandbox.Spec) (*sandbox.Exit, error)
}

// Policy decides about runs and calls.
type Policy interface {
	Decide(policy.Question) policy.Decision
}

// Tools are what scripts can call.
type Tools interface {
	// Find tells whether a tool exists, and how policy knows it.
	Find(ctx context.Context, name string) (belljar.Tool, bool)
	Call(ctx context.Context, name string, args json.RawMessage) (belljar.Value, error)
}

// Journal takes records.
type Journal interface {
	Ready(context.Context) error
	Append(context.Context, belljar.Record) error
	Flush(context.Context) error
}

// Bridge is the host's side of one run's tool calls.
type Bridge interface {
	ChildFile() *os.File
	Close() bridge.Stats
}

// Metrics counts. Names that are in no registry of ours are given as "": a script
// invents names without end, and each would be a series.
type Metrics interface {
	Active(delta int) // runs in the sandbox
	Run(kind, lang, status string, wall time.Duration)
	Call(tool, outcome string, d time.Duration)
	KeptOut(bytes int64)
}

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) Active(int)                                {}
func (noMetrics) Run(string, string, string, time.Duration) {}
func (noMetrics) Call(string, string, time.Duration)        {}
func (noMetrics) KeptOut(int64)                             {}

// ErrClosed is what Run gives after Close.
var ErrClosed = errors.New("the engine is closed")

// Engine runs requests. It may be used from several goroutines at once.
type Engine struct {
	cfg   Config
	parts Parts
	log   *slog.Logger
	queue *queue

	assets sync.Map // name of a language to its []sandbox.File

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup // grows only while mu is held and closed is false
}

// New makes an engine. Its error is a [*belljar.Refusal] with everything that is
// wrong with the configuration.
func New(cfg Config, parts Parts) (*Engine, error) {
	if problems := cfg.Limits.Problems(parts.Languages.Names()); len(problems) > 0 {
		return nil, belljar.Refuse(belljar.CodeBadConfig, "Correct the configuration.", "%s", output.Sentences(problems))
	}
	if cfg.Minimum == "" {
		cfg.Minimum = belljar.LevelNamespaces
	}
	if cfg.Minimum.Rank() < 0 {
		return nil, belljar.Refuse(belljar.CodeBadConfig, "Use one of process, landlock, namespaces, gvisor.", "sandbox.minimum: %q is no isolation level.", cfg.Minimum)
	}
	runs, waiting := cfg.Limits.Runs, cfg.Limits.Queue
	if runs == 0 {
		runs = min(max(2, runtime.NumCPU()), MostRuns)
	}
	if waiting == 0 {
		waiting = DefaultQueue
	}
	log := parts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if parts.Metrics == nil {
		parts.Metrics = noMetrics{}
	}
	return &Engine{cfg: cfg, parts: parts, log: log, queue: newQueue(runs, waiting)}, nil
}

// Run takes one request through the pipeline. However it ends, the answer is a
// Result: a program's failure, a refusal, a cancelled context, our own fault. The
// error is ErrClosed and nothing else.
//
// events, if not nil, is told what happens meanwhile. It is called from one
// goroutine at a time and never after Run has returned; the program waits while it
// works, and Event.Data is only good until it returns.
func (e *Engine) Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, ErrClosed
	}
	e.runs.Add(1)
	e.mu.Unlock()
	defer e.runs.Done()
	return newRun(e, req, events).do(ctx), nil
}

// Close takes no further run and waits for those under way. To end them sooner,
// end their contexts.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.runs.Wait()
}

// Bounds gives what a run of a kind and language gets and the most it can ask for.
// An unknown language gives what holds for any.
func (e *Engine) Bounds(kind belljar.Kind, lang string) (standard, ceiling Limits) {
	l, err := e.parts.Languages.Resolve(lang, nil)
	if err != nil {
		l = nil
	}
	return e.cfg.Limits.Bounds(kind, l)
}

// scriptAssets reads what scripts of a language get, once: the sandbox knows them
// again by being the same.
func (e *Engine) scriptAssets(l *language.Language) ([]sandbox.File, error) {
	if v, ok := e.assets.Load(l.Name); ok {
		return v.([]sandbox.File), nil
	}
	list, err := l.Assets()
	if err != nil {
		return nil, fmt.Errorf("read the files for scripts of %s: %w", l.Name, err)
	}
	files := make([]sandbox.File, len(list))
	for i, a := range list {
		files[i] = sandbox.File{Name: a.Name, Data: a.Data}
	}
	v, _ := e.assets.LoadOrStore(l.Name, files)
	return v.([]sandbox.File), nil
}
