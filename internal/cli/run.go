package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/belljar/belljar"
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
snippet is a program by itself. "-" reads the source from stdin.`,
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
	fl.BoolVar(&f.script, "script", false, "a script, which may call tools (default with --workspace, --mcp-config or --tool)")
	fl.BoolVar(&f.snippet, "snippet", false, "a program by itself (default otherwise)")
	fl.StringVar(&f.stdin, "stdin", "", "file for the program's stdin, - for all of stdin; default: stdin if it is a file or a pipe with data")
	fl.StringArrayVar(&f.args, "arg", nil, "argument for the program (repeatable)")
	fl.StringArrayVar(&f.files, "file", nil, "SRC[:NAME], a file for the program's working directory (repeatable)")
	fl.StringArrayVar(&f.env, "env", nil, "K=V for the program's environment (repeatable)")
	fl.Var(timeFlag{&f.limits.TimeoutMS}, "timeout", "wall time, for example 5s")
	fl.Var(sizeFlag{&f.limits.MemoryBytes}, "memory", "memory, for example 512MiB")
	fl.Var(countFlag{&f.limits.Processes}, "processes", "processes and threads at one time")
	fl.Var(sizeFlag{&f.limits.DiskBytes}, "disk", "size of the working directory, for example 64MiB")
	fl.Var(sizeFlag{&f.limits.OutputBytes}, "output", "output after which the program is stopped, for example 16MiB")
	fl.StringVar(&f.isolation, "isolation", "", "least isolation: process, landlock, namespaces or gvisor; below it the run is refused")
	f.register(fl)
	fl.StringArrayVar(&f.tools, "tool", nil, "tool the script may call, instead of the default set (repeatable)")
	fl.StringArrayVar(&f.fence, "fence", nil, "tool to narrow the script to (repeatable); an empty name leaves none")
	fl.StringVar(&f.session, "session", "", "name under which the journal files the run")
	fl.BoolVar(&f.json, "json", false, "print one Result object on stdout and nothing else")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no line about the run on stderr")
	return cmd
}

func (a *app) runRun(cmd *cobra.Command, f *runFlags, file string) error {
	ctx := cmd.Context()
	if f.script && f.snippet {
		return &usageError{text: "--script and --snippet exclude each other."}
	}
	set, err := a.settings(&f.settingsFlags)
	if err != nil {
		return err
	}
	set.Config.Sandbox.Single = true
	eng, err := a.open(ctx, set, a.log())
	if err != nil {
		return err
	}
	res, err := a.runOne(ctx, eng, f, file)
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
func (a *app) runOne(ctx context.Context, eng Engine, f *runFlags, file string) (*belljar.Result, error) {
	req, err := a.request(ctx, f, file, eng.LanguageOf)
	if err != nil {
		return nil, err
	}
	if f.json {
		res, err := eng.Run(ctx, req, nil)
		if err != nil {
			return nil, err
		}
		return res, a.printJSON(res)
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
		return nil, fmt.Errorf("write to stdout: %w", writeErr)
	}
	a.runLine(res, f.quiet)
	return res, nil
}

// runFailed ends a run that has no result.
func (a *app) runFailed(args []string, err error) int {
	if c, ok := errors.AsType[errCancelled](err); ok {
		a.say("%s before the program ran.", c.Error())
		return codeCancelled
	}
	a.say("%s", sentence(err))
	res := unmade(err)
	a.resultIfJSON(args, err)
	return exitCode(res)
}

// resultIfJSON keeps the promise of --json where flags may not have been read.
func (a *app) resultIfJSON(args []string, err error) {
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	if slices.Contains(args[:end], "--json") || slices.Contains(args[:end], "--json=true") {
		_ = a.printJSON(unmade(err)) // the exit code tells the same
	}
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
