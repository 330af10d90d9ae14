package cases

import (
	"time"

	"github.com/belljar/belljar"
)

// markName is a variable in a run's environment. Its value is in no other
// process's, so that everything the run leaves behind can be found by it.
const markName = "CASE_MARK"

// program is what one run is given.
type program struct {
	nonce  string
	source string
	stdin  string
	files  []belljar.File
	limits belljar.LimitsRequest
	script bool // it may call the harness's tools
}

// patience is the time limit in milliseconds of a case that names none: more than
// the engine's own, so that a machine under load is not taken for a program that
// does not end.
const patience = 25_000

func oneLine() *belljar.Request {
	return &belljar.Request{Kind: belljar.KindSnippet, Lang: "python", Source: "print('alive')"}
}

// program makes a program of a case, with another source for a step.
func (b *bench) program(c *Case, source, nonce string) *program {
	p := &program{nonce: nonce, source: b.fill(source, nonce), stdin: b.fill(c.stdin(), nonce), script: c.Tools != nil}
	for name, content := range c.Files {
		p.files = append(p.files, belljar.File{Name: b.fill(name, nonce), Content: b.fill(content, nonce)})
	}
	given := func(n, unit int64) *int64 {
		if n == 0 {
			return nil
		}
		n *= unit
		return &n
	}
	p.limits = belljar.LimitsRequest{
		TimeoutMS: given(c.Limits.TimeoutMS, 1), MemoryBytes: given(c.Limits.MemoryMB, 1<<20), DiskBytes: given(c.Limits.DiskMB, 1<<20),
		Processes: given(c.Limits.Processes, 1), OutputBytes: given(c.Limits.OutputBytes, 1),
	}
	if p.limits.TimeoutMS == nil {
		p.limits.TimeoutMS = given(patience, 1)
	}
	return p
}

func (p *program) request(kind belljar.Kind) *belljar.Request {
	req := &belljar.Request{Kind: kind, Lang: "python", Source: p.source, Stdin: p.stdin, Files: p.files, Limits: p.limits,
		Env: map[string]string{markName: p.nonce}, Tools: []string{}}
	if p.script {
		req.Kind, req.Tools = belljar.KindScript, toolNames
	}
	return req
}

// reply is what a surface gave back.
type reply struct {
	res   *belljar.Result
	texts []string // all that came, as it came
	took  time.Duration
}
