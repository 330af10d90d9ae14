package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/output"
	"github.com/belljar/belljar/internal/sandbox"
)

// recordTime bounds how long the answer waits for the journal.
const recordTime = 15 * time.Second

// NoSession is what the journal says when a request names no session.
const NoSession = "ptc"

// newID makes an identifier of 20 random characters.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()[:20]) }

// fault is our own failure: what, in words for whoever called, and the error for
// the log.
type fault struct {
	what string
	err  error
}

func (f *fault) Error() string { return f.what + ": " + f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// run is one request on its way.
type run struct {
	e     *Engine
	req   belljar.Request // a copy; its lists are only read
	res   *belljar.Result
	begin time.Time
	feed  feed
	calls calls

	lang    *language.Language
	files   []sandbox.File
	minimum belljar.Level
	// unready says why the journal takes no records, where that is accepted.
	unready error
	// unrecordable says that the run was refused because it could not be recorded.
	unrecordable bool
}

func newRun(e *Engine, req *belljar.Request, events func(belljar.Event)) *run {
	r := &run{e: e, begin: time.Now()}
	if req != nil {
		r.req = *req
	}
	r.res = &belljar.Result{
		ID: newID("run_"), Kind: r.req.Kind, Stage: belljar.StageAdmission, Lang: cut(r.req.Lang, 40),
		Usage:     belljar.Usage{},
		Isolation: belljar.Isolation{Protections: []string{}, Missing: []belljar.Missing{}, Network: "none"},
		Denials:   []belljar.Denial{}, Findings: []belljar.Finding{}, Artifacts: []belljar.Artifact{},
		ToolCalls: belljar.ToolCalls{Calls: []belljar.ToolCall{}},
	}
	r.feed = feed{run: r.res.ID, log: e.log, events: events}
	return r
}

// do walks the pipeline and always gives a result.
func (r *run) do(ctx context.Context) *belljar.Result {
	func() {
		defer func() {
			if p := recover(); p != nil {
				r.failed(&fault{"the engine met an error of its own", fmt.Errorf("panic: %v\n%s", p, debug.Stack())})
			}
		}()
		if err := r.pipeline(ctx); err != nil {
			r.ended(ctx, err)
		}
	}()
	r.conclude(ctx)
	return r.res
}

// pipeline is the way from a request to an exit. Its error says why there is none.
func (r *run) pipeline(ctx context.Context) error {
	if err := r.admit(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.e.queue.enter(ctx, func() { r.feed.state(belljar.StateQueued) }); err != nil {
		return err
	}
	defer r.e.queue.leave()
	r.e.parts.Metrics.Active(1)
	defer r.e.parts.Metrics.Active(-1)

	r.res.Stage = belljar.StageToolchain
	tc, err := r.e.parts.Toolchains.Find(ctx, r.lang)
	if err != nil {
		return r.unless(ctx, err, "the toolchain could not be looked at")
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	spec := &sandbox.Spec{
		Argv:      r.lang.Argv(tc.Path, r.req.Name, r.req.Args),
		Env:       environ(&r.req, r.lang, tc.Path),
		Files:     r.files,
		Toolchain: tc.Folders,
		Stdin:     []byte(r.req.Stdin),
		Limits:    r.res.Limits,
		Minimum:   r.minimum,
	}
	return r.execute(ctx, spec)
}

// ready makes sure that the run can be recorded before anything of it happens.
func (r *run) ready(ctx context.Context) error {
	err := r.e.parts.Journal.Ready(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.e.cfg.AuditOptional {
		r.unready = err
		return nil
	}
	r.unrecordable = true
	if refusal, ok := errors.AsType[*belljar.Refusal](err); ok {
		return refusal
	}
	r.e.log.Error("the journal is not ready", "run", r.res.ID, "err", err)
	return belljar.Refuse(belljar.CodeAudit, "Look at `belljar doctor`, or accept unrecorded runs with audit.required = false.",
		"the run cannot be recorded, so it was not started.")
}

// execute runs the program and reads the facts of its end.
func (r *run) execute(ctx context.Context, spec *sandbox.Spec) error {
	r.res.Stage = belljar.StageRun
	var link Bridge
	closed := func() {}
	if r.req.Kind == belljar.KindScript {
		assets, err := r.e.scriptAssets(r.lang)
		if err != nil {
			return &fault{"the files for scripts could not be read", err}
		}
		spec.Assets = assets
		// The bridge ends with this function whatever happens in it, so that no
		// call can come after the answer.
		link, err = r.e.parts.OpenBridge(ctx, r)
		if err != nil {
			return r.unless(ctx, err, "the bridge for tool calls could not be opened")
		}
		done := false
		closed = func() {
			if !done {
				done = true
				r.calls.close(link.Close())
			}
		}
		defer closed()
		spec.Bridge = link.ChildFile()
	}
	stdout, stderr := output.NewCapture(0, 0), output.NewCapture(0, 0)
	spec.Stdout, spec.Stderr = r.feed.stream("stdout", stdout), r.feed.stream("stderr", stderr)
	r.feed.state(belljar.StateRunning)
	r.res.Timing.AdmissionMS = ms(time.Since(r.begin))

	exit, err := r.e.parts.Sandbox.Run(ctx, spec)
	closed()
	r.res.Stdout, r.res.Output.Stdout = stdout.Text()
	r.res.Stderr, r.res.Output.Stderr = stderr.Text()
	if err != nil {
		return r.unless(ctx, err, "the sandbox could not run the program")
	}
	r.res.Usage = exit.Usage
	r.res.Isolation = whole(exit.Isolation)
	r.res.Denials = append(r.res.Denials, exit.Denials...)
	r.res.Timing.StartMS = ms(exit.Start)
	r.res.Timing.RunMS = exit.Usage.WallMS
	classify(r.res, exit)
	return nil
}

// whole makes the lists of an Isolation lists, also when they are empty.
func whole(i belljar.Isolation) belljar.Isolation {
	if i.Protections == nil {
		i.Protections = []string{}
	}
	if i.Missing == nil {
		i.Missing = []belljar.Missing{}
	}
	if i.Network == "" {
		i.Network = "none"
	}
	return i
}

// unless makes a part's error one of ours: a refusal stays one, an ended context
// is a cancellation, anything else is a fault.
func (r *run) unless(ctx context.Context, err error, what string) error {
	if refusal, ok := errors.AsType[*belljar.Refusal](err); ok {
		return refusal
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &fault{what, err}
}

// ended writes into the result why there is no exit.
func (r *run) ended(ctx context.Context, err error) {
	if refusal, ok := errors.AsType[*belljar.Refusal](err); ok {
		r.res.Status, r.res.Refusal = belljar.StatusRefused, refusal
		return
	}
	if f, ok := errors.AsType[*fault](err); ok {
		r.failed(f)
		return
	}
	if ctx.Err() != nil {
		r.res.Status = belljar.StatusCancelled
		if r.res.Stage == belljar.StageRun { // nothing was started
			r.res.Stage = belljar.StageAdmission
		}
		return
	}
	r.failed(&fault{"the engine met an error of its own", err})
}

// failed makes the result a fault: logged here once, in full, and shown as an id.
func (r *run) failed(f *fault) {
	r.res.OK, r.res.Status, r.res.Fault = false, belljar.StatusFailed, newID("fault_")
	r.e.log.Error("run failed", "fault", r.res.Fault, "run", r.res.ID, "what", f.what, "err", f.err)
	sentence := output.Explain(r.res, f.what)
	r.res.Error = &sentence
}

// conclude is the one way out: it completes the result, leaves one record and one
// metric, and ends the feed.
func (r *run) conclude(ctx context.Context) {
	r.res.ToolCalls = r.calls.sum(int64(len(r.res.Stdout)))
	if r.res.Timing.AdmissionMS == 0 {
		r.res.Timing.AdmissionMS = ms(time.Since(r.begin))
	}
	if r.res.Status != belljar.StatusFailed {
		r.explain()
	}
	if err := r.record(context.WithoutCancel(ctx)); err != nil {
		r.unrecorded(ctx, err)
	}
	lang := ""
	if r.lang != nil {
		lang = r.lang.Name // never what was asked for
	}
	r.e.parts.Metrics.Run(string(r.kind()), lang, string(r.res.Status), time.Since(r.begin))
	r.e.parts.Metrics.KeptOut(r.res.ToolCalls.BytesKeptOut)
	r.feed.end()
}

func (r *run) explain() {
	if sentence := output.Explain(r.res, ""); sentence != "" {
		r.res.Error = &sentence
	}
}

// kind is the request's kind, or script when it named none of the two.
func (r *run) kind() belljar.Kind {
	if r.req.Kind == belljar.KindSnippet {
		return belljar.KindSnippet
	}
	return belljar.KindScript
}

// unrecorded says that the journal does not hold this run. Where records are
// required the run must not pass for a good one, though it did happen.
func (r *run) unrecorded(ctx context.Context, err error) {
	switch {
	case r.e.cfg.AuditOptional:
		r.res.Unrecorded = reason(err)
		level := slog.LevelError
		if _, ok := errors.AsType[*belljar.Refusal](err); ok {
			level = slog.LevelWarn // the result says it all
		}
		r.e.log.Log(ctx, level, "run is not recorded", "run", r.res.ID, "err", err)
	case r.res.Status == belljar.StatusRefused || r.res.Status == belljar.StatusFailed || r.res.Stage != belljar.StageRun:
		// Nothing ran, or it is a fault already.
		r.e.log.Error("run is not recorded", "run", r.res.ID, "status", r.res.Status, "err", err)
	default:
		r.failed(&fault{"the run ended, but its record could not be written", err})
	}
}

// reason is what a result may say of an error: a refusal's words, else nothing of
// its inside.
func reason(err error) string {
	if refusal, ok := errors.AsType[*belljar.Refusal](err); ok {
		return refusal.Reason
	}
	return "the journal could not take the record; the log says why"
}

// record writes the run's record and waits until it and those of its calls are
// safe.
func (r *run) record(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the journal: %v\n%s", p, debug.Stack())
		}
	}()
	if r.unready != nil {
		return r.unready
	}
	if r.unrecordable {
		return nil // the refusal says it, whatever its code
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	rec := belljar.Record{
		Time: r.begin, Run: r.res.ID, Session: session(r.req.Session), Caller: r.req.Caller, Event: "run",
		Name: output.CallName(r.kind()), Args: r.recordedArgs(), Outcome: string(r.res.Status),
		Summary: r.summary(), DurationMS: ms(time.Since(r.begin)), OK: r.res.OK,
	}
	if r.res.Refusal != nil {
		rec.Code = string(r.res.Refusal.Code)
	}
	if err := r.recordRefused(ctx); err != nil {
		return err
	}
	journal := r.e.parts.Journal
	if err := journal.Append(ctx, rec); err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	if err := journal.Flush(ctx); err != nil {
		return fmt.Errorf("flush journal: %w", err)
	}
	return r.calls.lost()
}

// recordedArgs describes the request without its content: a hash tells one source
// from another.
func (r *run) recordedArgs() string {
	sum := sha256.Sum256([]byte(r.req.Source))
	args := map[string]any{
		"lang": r.res.Lang, "source_sha256": hex.EncodeToString(sum[:]), "source_bytes": len(r.req.Source), "stdin_bytes": len(r.req.Stdin),
		"files": len(r.req.Files), "limits": r.res.Limits, "isolation": r.res.Isolation.Level,
	}
	if r.req.Tools != nil {
		args["tools"] = first(r.req.Tools, 50)
	}
	if r.req.Fence != nil {
		args["fence"] = first(r.req.Fence, 50)
	}
	text, err := json.Marshal(args)
	if err != nil { // strings, numbers and lists of strings: cannot happen
		return "{}"
	}
	return string(text)
}

func first(list []string, n int) []string { return list[:min(n, len(list))] }

// summaryChars is a little more than the journal keeps.
const summaryChars = 300

func (r *run) summary() string {
	if r.res.Error != nil {
		return cut(*r.res.Error, summaryChars)
	}
	if text := strings.TrimSpace(r.res.Stdout); text != "" {
		return cut(text, summaryChars)
	}
	return cut(strings.TrimSpace(r.res.Stderr), summaryChars)
}

func session(name string) string {
	if name == "" {
		return NoSession
	}
	return name
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
