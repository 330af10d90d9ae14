package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/output"
	"github.com/belljar/belljar/jar"
	"github.com/spf13/cobra"
)

// runFlags are the flags of run.
type runFlags struct {
	settingsFlags
	lang      string
	script    bool
	snippet   bool
	stdin     string
	args      []string
	files     []string
	env       []string
	limits    belljar.LimitsRequest
	isolation string
	tools     []string
	fence     []string
	session   string
	json      bool
	quiet     bool
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] FILE|-",
		Short: "Run one program in a sandbox",
		Long: `Run one program in a sandbox. Its stdout and stderr come through as they are
written, its exit code becomes that of the command. A script may call tools; a
snippet is a program by itself. A program is a script when there are tools for
it: a workspace, MCP servers or extra tools, by a flag or by the configuration.
"-" reads the source from stdin.

Nothing that a program writes to its working directory outlives the run: what
it prints is what comes out.

Exit codes: the program's own, 128+N when it died on signal N, and
  124  it did not finish in time       127  no toolchain for the language
  125  Belljar failed                  130  cancelled
  126  refused, or a mistyped command  137  stopped at its memory or output limit`,
		Example: `  belljar run hello.py
  belljar run --workspace . digest.py
  echo 'print(6 * 7)' | belljar run -l python -`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return &usageError{text: `run needs a FILE, or "-" to read the source from stdin; "belljar run --help" tells more.`}
			case 1:
				return nil
			}
			return &usageError{text: fmt.Sprintf("run takes one FILE, but was given %q too; arguments of the program go with --arg.", args[1])}
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runRun(cmd, f, args[0]) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.lang, "lang", "l", "", "language; default: from the extension or the #! line")
	fl.BoolVar(&f.script, "script", false, "a script, which may call tools (default when there are tools for it)")
	fl.BoolVar(&f.snippet, "snippet", false, "a program by itself, without tools (default otherwise)")
	fl.Var(pathFlag{&f.stdin, "file"}, "stdin", "file for the program's stdin, at most 1 MiB, - for all of stdin; default: stdin if it is a file or a pipe with data")
	fl.StringArrayVar(&f.args, "arg", nil, "argument for the program (repeatable)")
	fl.StringArrayVar(&f.files, "file", nil, "SRC[:NAME], a file for the program's working directory (repeatable; 32 MiB together)")
	fl.StringArrayVar(&f.env, "env", nil, "K=V for the program's environment (repeatable)")
	fl.Var(timeFlag{&f.limits.TimeoutMS}, "timeout", "wall time, for example 5s; default 30s for a script, 5s for a snippet, at most 5m")
	fl.Var(sizeFlag{&f.limits.MemoryBytes}, "memory", "memory, for example 256MiB; default 512MiB, at least 8MiB, at most 2GiB")
	fl.Var(countFlag{&f.limits.Processes}, "processes", "processes and threads at one time; default 64, at most 512")
	fl.Var(sizeFlag{&f.limits.DiskBytes}, "disk", "all that the program can write, for example 128MiB; default 64MiB, at most 1GiB")
	fl.Var(sizeFlag{&f.limits.OutputBytes}, "output", "output after which the program is stopped; default 16MiB, at most 64MiB")
	fl.StringVar(&f.isolation, "isolation", "", "least isolation, below which the run is refused. Runs get namespaces, and less is never given; gvisor is a level that this version does not have, as is landlock by itself")
	f.register(fl)
	fl.Var(namesFlag{&f.tools}, "tool", "tools the script may call instead of the default set: a,b (repeatable)")
	fl.Var(namesFlag{&f.fence}, "fence", "tools to narrow the script to: a,b (repeatable); an empty name leaves none")
	fl.StringVar(&f.session, "session", "", "name under which the journal files the run")
	fl.BoolVar(&f.json, "json", false, "print one Result object on stdout and nothing else")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no line about the run on stderr")
	complete(cmd, "lang", jar.LanguageNames)
	complete(cmd, "isolation", func() []string { return []string{string(belljar.LevelNamespaces)} })
	return cmd
}

func (a *app) runRun(cmd *cobra.Command, f *runFlags, file string) error {
	ctx := cmd.Context()
	if err := f.check(); err != nil {
		return err
	}
	set, err := a.settings(&f.settingsFlags)
	if err != nil {
		return err
	}
	set.Config.Sandbox.Single = true
	// Warnings are in the result too, and it is shown.
	eng, err := a.open(ctx, set, a.logFrom(slog.LevelError))
	if err != nil {
		return err
	}
	res, err := a.runOne(ctx, eng, f, f.kind(&set.Config), file)
	// Closing writes the records that wait; it comes before the exit code so that
	// whoever waits for this command finds them.
	closeErr := eng.Close()
	if err != nil {
		return err
	}
	if closeErr != nil {
		a.say("%s", sentence(fmt.Errorf("close: %w", closeErr)))
	}
	if code := exitCode(res); code != 0 {
		return exitError(code)
	}
	return nil
}

// runOne makes the run and shows it.
func (a *app) runOne(ctx context.Context, eng Engine, f *runFlags, kind belljar.Kind, file string) (*belljar.Result, error) {
	req, err := a.request(ctx, f, kind, file, eng.LanguageOf)
	if err != nil {
		return nil, err
	}
	lowered, err := checkLimits(req, eng)
	if err != nil {
		return nil, err
	}
	if f.json {
		res, err := eng.Run(ctx, req, nil)
		if err != nil {
			return nil, err
		}
		a.sayLost(f.quiet)
		return res, a.printJSON(res)
	}
	for _, note := range lowered {
		if !f.quiet {
			a.say("%s", note)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	live := newStreams(a, cancel)
	res, err := eng.Run(ctx, req, live.event)
	writeErr := live.close()
	switch {
	case errors.Is(writeErr, syscall.EPIPE):
		return nil, writeErr
	case err != nil:
		return nil, err
	case writeErr != nil:
		return nil, writeErr
	}
	if req.Kind == belljar.KindScript && !f.quiet {
		for _, c := range eng.Unavailable(ctx) {
			a.say("%s", c.Meaning)
		}
	}
	if res.Stdout != "" {
		a.sayLost(f.quiet)
	}
	a.runLine(res, f.quiet)
	return res, nil
}

func (a *app) sayLost(quiet bool) {
	if a.outLost && !quiet {
		a.say("stdout is closed or leads to /dev/null: what was printed there is lost.")
	}
}

// runFailed ends a run that has no result.
func (a *app) runFailed(args []string, err error) int {
	res := unmade(err)
	// What could not be written on stdout must not stay unsaid.
	if !asksJSON(args) || a.printJSON(res) != nil {
		a.say("%s", output.Sentences([]string{*res.Error}))
	}
	return exitCode(res)
}

// asksJSON keeps the promise of --json where flags may not have been read.
func asksJSON(args []string) bool {
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	return slices.Contains(args[:end], "--json") || slices.Contains(args[:end], "--json=true")
}

// printJSON writes one document on stdout, for programs: nothing in it is changed
// for a terminal but what JSON itself escapes.
func (a *app) printJSON(v any) error {
	if a.outTTY {
		return a.printPretty(v)
	}
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) printPretty(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
