package cli

import (
	"errors"

	"github.com/belljar/belljar"
)

const (
	codeCompile   = 123
	codeTimeout   = 124
	codeFault     = 125
	codeCancelled = 130
	codeKilled    = 137
	codeNoReader  = 141 // as a shell shows a process that died of SIGPIPE
)

// exitCode is what `belljar run` ends with after a result.
func exitCode(res *belljar.Result) int {
	switch res.Status {
	case belljar.StatusExited, belljar.StatusSignalled:
		switch {
		case res.Stage == belljar.StageCompile:
			return codeCompile
		case res.ExitCode == nil:
			return codeFault
		}
		return *res.ExitCode & 0xff // 128 + the signal, after one
	case belljar.StatusTimedOut:
		return codeTimeout
	case belljar.StatusOutOfMemory, belljar.StatusOutputLimit:
		return codeKilled
	case belljar.StatusCancelled:
		return codeCancelled
	case belljar.StatusRefused:
		return refusalExit(res.Refusal)
	}
	return codeFault
}

func refusalExit(r *belljar.Refusal) int {
	if r != nil {
		if info, ok := belljar.Codes[r.Code]; ok {
			return info.Exit
		}
	}
	return belljar.Codes[belljar.CodeBadRequest].Exit
}

// unmade is the result of a run that never reached the engine, so that --json has
// one whatever happens.
func unmade(err error) *belljar.Result {
	why := sentence(err)
	res := &belljar.Result{
		Status: belljar.StatusFailed, Stage: belljar.StageAdmission, Error: &why,
		Isolation: belljar.Isolation{Protections: []string{}, Missing: []belljar.Missing{}},
		Denials:   []belljar.Denial{}, Findings: []belljar.Finding{}, Artifacts: []belljar.Artifact{},
		ToolCalls: belljar.ToolCalls{Calls: []belljar.ToolCall{}},
	}
	if r, ok := errors.AsType[*belljar.Refusal](err); ok {
		res.Status, res.Refusal = belljar.StatusRefused, r
	}
	if c, ok := errors.AsType[errCancelled](err); ok {
		res.Status, why = belljar.StatusCancelled, c.Error()+" before the program ran"
	}
	return res
}
