package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/belljar/belljar/jar"
)

// Options of a whole comparison.
type Options struct {
	Rounds  int    // of the starts; default 60
	Calls   int    // tool calls of one round of the bridge; default 4000
	Python  string // the bare interpreter; default /usr/bin/python3, resolved
	Command string // the belljar binary, for the cost of the whole command; "": left out
	// Progress is told which group is being measured; nil: nobody is.
	Progress io.Writer
}

const helloPython = "print('hello')\n"

// Run measures everything. What the machine lacks (a C compiler) is left out and
// named in skipped.
func Run(ctx context.Context, opt Options) (rows []Row, skipped []string, err error) {
	if opt.Rounds <= 0 {
		opt.Rounds = 60
	}
	if opt.Calls <= 0 {
		opt.Calls = 4000
	}
	if opt.Python == "" {
		opt.Python = "/usr/bin/python3"
	}
	if opt.Python, err = filepath.EvalSymlinks(opt.Python); err != nil {
		return nil, nil, fmt.Errorf("find the bare interpreter: %w", err)
	}
	// A journal of its own: measurements are no runs that anybody asked for.
	state, err := os.MkdirTemp("", "belljar-bench-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(state)
	var cfg jar.Config
	cfg.Policy.MaxCallsPerRun = 1_000_000
	j, err := jar.Open(ctx, jar.WithConfig(cfg), jar.WithState(state), jar.WithFunc(blobTool, "Answers with text of a length.", blob))
	if err != nil {
		return nil, nil, err
	}
	defer j.Close()
	host, err := sandbox.Open(sandbox.Config{})
	if err != nil {
		return nil, nil, err
	}
	defer host.Close()

	hello := []string{opt.Python, "-c", helloPython}
	groups := []Group{{"start python", []Case{
		{Name: "bare python", Run: bare(hello...)},
		{Name: "cold sandbox", Run: isolated(host, hello, nil), Goal: 1.25},
		{Name: "engine, journal included", Run: request(plain{j}, &belljar.Request{Kind: belljar.KindSnippet, Lang: "python", Source: helloPython})},
	}}}
	if dir, bin, err := compileHello(ctx); err != nil {
		skipped = append(skipped, "start C: "+err.Error())
	} else {
		defer os.RemoveAll(dir)
		groups = append(groups, Group{"start C", []Case{
			{Name: "bare C", Run: bare(bin)},
			{Name: "cold sandbox", Run: isolated(host, []string{bin}, []string{dir}), Goal: 2.2},
		}})
	}
	if opt.Command != "" {
		file := filepath.Join(state, "hello.py")
		if err := os.WriteFile(file, []byte(helloPython), 0o600); err != nil {
			return nil, nil, err
		}
		groups = append(groups, Group{"whole command", []Case{
			{Name: "bare python", Run: bare(opt.Python, file)},
			{Name: "belljar run", Run: bare(opt.Command, "run", "--quiet", file), Goal: 2},
		}})
	}
	for _, g := range groups {
		more, err := measure(ctx, opt, g, opt.Rounds)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, more...)
	}
	for _, size := range []struct {
		name         string
		bytes, calls int
		goal         float64
	}{{"20 B", 20, opt.Calls, 2}, {"100 KB", 100_000, max(1, opt.Calls/4), 4}} {
		more, err := measure(ctx, opt, Group{"tool calls of " + size.name, []Case{
			{Name: "loopback JSON lines", Run: plainRate(opt.Python, size.calls, size.bytes)},
			{Name: "bridge", Run: bridgeAlone(host, opt.Python, size.calls, size.bytes), Goal: size.goal},
			{Name: "engine, policed and recorded", Run: bridgeRate(plain{j}, size.calls, size.bytes)},
		}}, max(5, opt.Rounds/6))
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, more...)
	}
	return rows, skipped, nil
}

func measure(ctx context.Context, opt Options, g Group, rounds int) ([]Row, error) {
	if opt.Progress != nil {
		fmt.Fprintf(opt.Progress, "measuring: %s\n", g.Name)
	}
	return Measure(ctx, g, rounds, 3)
}

// plain is a jar whose events nobody watches.
type plain struct{ *jar.Jar }

func (p plain) Run(ctx context.Context, req *belljar.Request) (*belljar.Result, error) {
	return p.Jar.Run(ctx, req)
}
