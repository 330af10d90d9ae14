package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/mcpserver"
	"github.com/belljar/belljar/jar"
)

// fakeEngine plays a jar. run makes the result; it may send events.
type fakeEngine struct {
	run    func(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error)
	tools  []Tool
	broken []error
	checks []belljar.Check
	absent []belljar.Check

	mu     sync.Mutex
	asked  *belljar.Request
	closed bool
}

func (e *fakeEngine) Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
	e.mu.Lock()
	e.asked = req
	e.mu.Unlock()
	if e.run == nil {
		return exited(req, 0), nil
	}
	return e.run(ctx, req, events)
}

func (e *fakeEngine) Tools(context.Context, []string, []string) ([]Tool, []error) {
	return e.tools, e.broken
}
func (e *fakeEngine) Checks(context.Context) []belljar.Check { return e.checks }
func (e *fakeEngine) LanguageOf(file, source string) string {
	if strings.HasSuffix(file, ".py") || strings.HasPrefix(source, "#!/usr/bin/env python3\n") {
		return "python"
	}
	return ""
}
func (e *fakeEngine) Describe(*mcpserver.Options) {}

func (e *fakeEngine) Bounds(kind belljar.Kind, _ string) (standard, ceiling jar.Limits) {
	standard = jar.Limits{Timeout: 30 * time.Second, Memory: 512 << 20, Processes: 64, Disk: 64 << 20, OutputBytes: 16 << 20}
	if kind == belljar.KindSnippet {
		standard.Timeout = 5 * time.Second
	}
	return standard, jar.Limits{Timeout: 5 * time.Minute, Memory: 2 << 30, Processes: 512, Disk: 1 << 30, OutputBytes: 64 << 20}
}

func (e *fakeEngine) Unavailable(context.Context) []belljar.Check { return e.absent }

func (e *fakeEngine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

// exited is the result of a program that ended by itself.
func exited(req *belljar.Request, code int) *belljar.Result {
	res := unmade(errors.New("x"))
	res.OK, res.Error, res.Status, res.Stage, res.ExitCode = true, nil, belljar.StatusExited, belljar.StageRun, &code
	res.Kind, res.Lang, res.Isolation.Level = req.Kind, req.Lang, belljar.LevelNamespaces
	return res
}

// stopped is the result of a program that we ended.
func stopped(status belljar.Status, why string) *belljar.Result {
	res := unmade(errors.New(why))
	res.Status, res.Stage, res.Kind = status, belljar.StageRun, belljar.KindScript
	return res
}

// bench is a command line with captured streams in a folder of its own.
type bench struct {
	*app
	engine *fakeEngine
	stdout *bytes.Buffer
	stderr *bytes.Buffer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	b := &bench{engine: &fakeEngine{}, stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)}
	b.app = &app{
		in: null, out: b.stdout, err: b.stderr, dir: dir,
		env:  []string{"HOME=" + dir},
		open: func(context.Context, *settings, *slog.Logger) (Engine, error) { return b.engine, nil },
		exit: func(int) {},
	}
	return b
}

// file writes a file into the folder and gives its path.
func (b *bench) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *bench) call(t *testing.T, args ...string) int {
	t.Helper()
	b.stdout.Reset()
	b.stderr.Reset()
	return b.run(t.Context(), args)
}

func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s is %q, without %q", what, text, p)
		}
	}
}
