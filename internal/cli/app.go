package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/mcpserver"
	"github.com/belljar/belljar/internal/output"
	"github.com/belljar/belljar/jar"
	"golang.org/x/term"
)

// Engine is what the commands need of an open jar.
type Engine interface {
	// Run makes one run. events, if not nil, is called from one goroutine at a
	// time and not after Run has returned.
	Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error)
	// Tools gives every tool there is, sorted by name, and why a script of this
	// selection and fence may not call some of them; the errors name sources that
	// could not be asked.
	Tools(ctx context.Context, selection, fence []string) ([]Tool, []error)
	Checks(ctx context.Context) []belljar.Check
	// LanguageOf guesses a language by file name or #! line; "" when neither says.
	LanguageOf(file, source string) string
	// Bounds tells what a run gets that asks for no limits, and the most it can get.
	Bounds(kind belljar.Kind, lang string) (standard, ceiling jar.Limits)
	// Unavailable tells which MCP servers were needed so far and did not start.
	Unavailable(ctx context.Context) []belljar.Check
	// Describe fills in what the MCP server tells its clients about runs.
	Describe(opt *mcpserver.Options)
	// Close gives everything back. The journal has all records when it returns.
	Close() error
}

// Tool is a tool as one run sees it. Why is empty when a script may call it.
type Tool struct {
	belljar.Tool
	Signature string
	Why       string // in words
	Hint      string // what to do about it
	Code      string // stable code of Why
}

// app is one call of the command.
type app struct {
	in     *os.File
	out    io.Writer
	err    io.Writer
	outTTY bool
	errTTY bool
	// outLost says that nothing comes of what is written to out.
	outLost bool
	dir     string // working directory
	env     []string
	open    func(ctx context.Context, s *settings, log *slog.Logger) (Engine, error)
	// signals gets the signals that cancel; nil in tests that send none.
	signals <-chan os.Signal
	exit    func(code int) // of the second signal
}

// heapLimit is from which memory on, in bytes, collections come early. It refuses
// nothing: what is alive may be more.
const heapLimit = 256 << 20

// Main runs the command of this process and gives its exit code.
func Main() int {
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // a folder that is gone; what needs it will say so
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	// A reader of stdout that goes away is an error of the write, which ends the
	// run in order, and not a signal that leaves everything lying about. It is
	// caught, not ignored: programs that we start would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// The heap of a command is small and what passes through it (files, answers of
	// tools) is short-lived: collecting it less often saves more than it costs.
	// A heap that is large after all is collected as often as it takes.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(heapLimit)
	a := &app{
		in: os.Stdin, out: stdout{os.Stdout}, err: os.Stderr,
		outTTY: term.IsTerminal(1), errTTY: term.IsTerminal(2), outLost: leadsNowhere(1),
		dir: dir, env: os.Environ(), open: openJar,
		signals: signals, exit: os.Exit,
	}
	return a.run(context.Background(), os.Args[1:])
}

// exitError is an ending with a code whose words, if any, have been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a mistyped command line.
type usageError struct {
	text string
}

func (e *usageError) Error() string { return e.text }

// run executes one command line.
func (a *app) run(ctx context.Context, args []string) int {
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if errors.Is(err, syscall.EPIPE) {
		return codeNoReader
	}
	isRun := cmd.Name() == "run"
	if usage, ok := a.usage(cmd, err); ok {
		if isRun {
			return a.runFailed(args, belljar.Refuse(belljar.CodeBadRequest, "", "%s", usage.text))
		}
		a.say("%s", usage.text)
		return 2
	}
	if isRun {
		return a.runFailed(args, err)
	}
	a.say("%s", sentence(err))
	return 1
}

// say writes one line of talk. What it tells may hold names from anywhere.
func (a *app) say(format string, args ...any) {
	text := output.NeutralString(fmt.Sprintf(format, args...))
	fmt.Fprintf(a.err, "belljar: %s\n", strings.TrimRight(text, "\n"))
}

// sentence is what a person reads of an error: cause, then the next step.
func sentence(err error) string {
	r, ok := errors.AsType[*belljar.Refusal](err)
	if !ok {
		return err.Error()
	}
	if r.Hint != "" && strings.Contains(r.Reason, "\n") { // a list: what to do comes below it
		return r.Reason + "\n" + r.Hint
	}
	return r.Error()
}

// getenv looks a variable up in the environment of this call.
func (a *app) getenv(name string) string {
	for _, kv := range slices.Backward(a.env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// errCancelled is the cause of a run that a signal cancelled.
type errCancelled struct{ signal os.Signal }

func isCancelled(err error) bool {
	_, ok := errors.AsType[errCancelled](err)
	return ok || errors.Is(err, context.Canceled)
}

func (e errCancelled) Error() string { return "cancelled by " + e.signal.String() }

// cancelOnSignal gives a context that the first signal cancels; the second ends
// the process at once, and the kernel what it had started.
func (a *app) cancelOnSignal(ctx context.Context) (context.Context, func()) {
	if a.signals == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for first := true; ; first = false {
			select {
			case s := <-a.signals:
				if !first {
					a.exit(codeCancelled)
				}
				cancel(errCancelled{s})
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
		cancel(nil)
	}
}
