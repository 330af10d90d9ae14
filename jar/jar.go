package jar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/audit"
	"github.com/belljar/belljar/internal/engine"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/telemetry"
	"github.com/belljar/belljar/internal/toolchain"
	"github.com/belljar/belljar/internal/toolset"
	"github.com/belljar/belljar/languages"
)

// ErrClosed is what Run gives after Close.
var ErrClosed = engine.ErrClosed

// Jar runs programs. It may be used from several goroutines at once.
type Jar struct {
	cfg        Config
	languages  *language.Registry
	toolchains *toolchain.Finder
	policy     *policy.Policy
	tools      *toolset.Set
	metrics    *telemetry.Metrics
	journal    *lazyJournal
	sandbox    *lazySandbox
	engine     *engine.Engine
}

// Open joins the parts. Its error is a [*belljar.Refusal] with code bad_config that
// says what to correct, or what an option could not do.
//
// ctx bounds the opening alone.
func Open(ctx context.Context, opts ...Option) (*Jar, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	var o options
	for _, option := range opts {
		if err := option(&o); err != nil {
			return nil, err
		}
	}
	if o.log == nil {
		o.log = slog.Default()
	}
	state := o.state
	if state == "" {
		// Without a home there is nowhere to remember interpreters; the journal
		// says why it cannot be opened.
		state, _ = audit.StateDir()
	} else if o.cfg.Audit.Path == "" {
		o.cfg.Audit.Path = filepath.Join(state, "journal.db")
	}

	registry, err := language.Open(languages.FS)
	if err != nil {
		return nil, fmt.Errorf("open the languages: %w", err)
	}
	if err := o.cfg.check(registry.Names()); err != nil {
		return nil, err
	}
	j := &Jar{cfg: o.cfg, languages: registry, toolchains: toolchain.New(o.cfg.Languages, state), metrics: telemetry.New(),
		journal: newLazyJournal(o.cfg.audit()), sandbox: newLazySandbox(o.cfg.Sandbox)}
	if j.policy, err = policy.New(o.cfg.policy(o.funcs)); err != nil {
		return nil, err
	}
	if j.tools, err = toolset.Open(o.cfg.toolset(o.funcs)); err != nil {
		return nil, err
	}
	j.engine, err = engine.New(o.cfg.engine(), engine.Parts{
		Languages: registry, Toolchains: j.toolchains, Sandbox: j.sandbox, Policy: j.policy, Tools: j.tools, Journal: j.journal,
		OpenBridge: openBridge(o.cfg.Bridge, o.log), Metrics: j.metrics, Log: o.log,
	})
	if err != nil {
		return nil, errors.Join(err, j.tools.Close())
	}
	return j, nil
}

// RunOption changes how one run is made.
type RunOption func(*runOptions)

type runOptions struct{ events func(belljar.Event) }

// WithEvents tells what happens during the run: output as it comes, tool calls as
// they are answered. f is called from one goroutine at a time and never after Run
// has returned; the program waits while it works, and Event.Data is only good until
// it returns.
func WithEvents(f func(belljar.Event)) RunOption {
	return func(o *runOptions) { o.events = f }
}

// Run runs one program and waits for its end. A request that names no kind is a
// script. A program that fails, a refusal, an
// ended context and a fault of ours are all told by the Result; the error is
// [ErrClosed] and nothing else. Ending ctx kills the program.
func (j *Jar) Run(ctx context.Context, req *belljar.Request, opts ...RunOption) (*belljar.Result, error) {
	var o runOptions
	for _, option := range opts {
		option(&o)
	}
	if req != nil && req.Caller == "" {
		named := *req
		named.Caller = "go"
		req = &named
	}
	// Both go on beside everything up to the run itself; what is wrong with them is
	// told there.
	_, _ = j.sandbox.open()
	_, _ = j.journal.open()
	return j.engine.Run(ctx, req, o.events)
}

// Runner is a Jar as a surface wants it.
type Runner struct{ jar *Jar }

// Runner gives the Jar as a Runner.
func (j *Jar) Runner() Runner { return Runner{j} }

// Run is [Jar.Run] with the events as a parameter that may be nil.
func (r Runner) Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
	return r.jar.Run(ctx, req, WithEvents(events))
}

// Tools lists every tool there is, sorted by name, starting upstream servers where
// needed. The errors name servers that have none to offer now.
func (j *Jar) Tools(ctx context.Context) ([]belljar.Tool, []error) { return j.tools.Tools(ctx) }

// Offered lists the tools that a script may call, sorted by name, given a request's
// Tools and Fence (nil: none given).
func (j *Jar) Offered(ctx context.Context, selection, fence []string) ([]belljar.Tool, []error) {
	all, errs := j.tools.Tools(ctx)
	return j.policy.Offered(all, selection, fence), errs
}

// Decide tells whether a script may call a tool, given a request's Tools and Fence,
// and if not, why.
func (j *Jar) Decide(tool belljar.Tool, selection, fence []string) policy.Decision {
	return j.policy.Decide(policy.Question{Via: policy.ViaScript, Tool: tool.Name, Forms: tool.Forms, Known: true, Selection: selection, Fence: fence})
}

// Unavailable tells which upstream MCP servers were needed so far and could not be
// started, or have ended since, each with why. It starts none.
func (j *Jar) Unavailable(ctx context.Context) []belljar.Check {
	return slices.DeleteFunc(j.tools.Checks(ctx), func(c belljar.Check) bool {
		return c.State != belljar.CheckFail || !strings.HasPrefix(c.Name, serverCheck)
	})
}

// serverCheck begins the name of a check of an upstream server.
const serverCheck = "mcp server "

// MaxCalls is how many tool calls one run may make.
func (j *Jar) MaxCalls() int {
	if n := j.cfg.Policy.MaxCallsPerRun; n > 0 {
		return n
	}
	return policy.DefaultMaxCalls
}

// LanguageNames lists the languages that this version knows, whether or not they
// can run here.
func LanguageNames() []string {
	registry, err := language.Open(languages.FS)
	if err != nil {
		return nil
	}
	return registry.Names()
}

// Limits bound one kind of run.
type Limits = engine.Limits

// Least is the least of each limit that a request can ask for.
func Least() Limits { return engine.Least() }

// Bounds tells what a run gets that asks for no limits, and the most it can ask for.
func (j *Jar) Bounds(kind belljar.Kind, lang string) (standard, ceiling Limits) {
	return j.engine.Bounds(kind, lang)
}

// LanguageOf guesses the language of a program by its file name or its #! line; ""
// when neither says.
func (j *Jar) LanguageOf(file, source string) string {
	for _, l := range []*language.Language{j.languages.ByExtension(file), j.languages.ByShebang(source)} {
		if l != nil {
			return l.Name
		}
	}
	return ""
}

// Languages lists the languages that can run here, for a kind of run.
func (j *Jar) Languages(ctx context.Context, kind belljar.Kind) []string {
	all, _ := j.languages.All() // a broken entry runs nothing
	var out []*language.Language
	for _, l := range all {
		if kind != belljar.KindScript || l.Scripts() {
			out = append(out, l)
		}
	}
	return j.toolchains.Runnable(ctx, out)
}

// Filter chooses records of the journal.
type Filter = audit.Filter

// Records lists what the journal holds, newest first.
func (j *Jar) Records(ctx context.Context, f Filter) ([]belljar.Record, error) {
	journal, err := j.journal.open()
	if err != nil {
		return nil, err
	}
	return journal.List(ctx, f)
}

// Metrics gives the counters of this Jar's runs and calls.
func (j *Jar) Metrics() *telemetry.Metrics { return j.metrics }

// Checks asks every part whether it can work, as `belljar doctor` shows it. It runs
// the smallest program in a sandbox and starts upstream servers.
func (j *Jar) Checks(ctx context.Context) []belljar.Check {
	var out []belljar.Check
	if host, err := j.sandbox.open(); err != nil {
		out = append(out, failed("sandbox", err))
	} else {
		out = append(out, host.Checks(ctx)...)
	}
	all, err := j.languages.All()
	if err != nil {
		out = append(out, failed("languages", err))
	}
	out = append(out, j.toolchains.Checks(ctx, all)...)
	j.tools.Tools(ctx) // its errors are checks of the servers
	out = append(out, j.tools.Checks(ctx)...)
	out = append(out, j.policy.Checks()...)
	if journal, err := j.journal.open(); err != nil {
		out = append(out, failed("audit journal", err))
	} else {
		out = append(out, journal.Checks(ctx)...)
	}
	return out
}

// failed is the check of a part that could not be opened.
func failed(name string, err error) belljar.Check {
	c := belljar.Check{Name: name, State: belljar.CheckFail, Meaning: err.Error()}
	if refusal, ok := errors.AsType[*belljar.Refusal](err); ok {
		c.Meaning, c.Remedy = refusal.Reason, refusal.Hint
	}
	return c
}

// Close takes no further run, waits for those under way, and closes all parts, the
// journal last. To end runs sooner, end their contexts.
func (j *Jar) Close() error {
	j.engine.Close()
	return errors.Join(j.tools.Close(), j.sandbox.close(), j.journal.close())
}
