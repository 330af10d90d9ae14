package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/output"
	"github.com/belljar/belljar/internal/policy"
)

const (
	maxSourceChars = 100_000
	maxStdinBytes  = 1 << 20
	maxNames       = 1000 // of tools in a request
	maxWord        = 200  // bytes of a session or a tool's name
	scriptLanguage = "python"
)

// admit decides everything that can be decided before a slot is taken. What it
// accepts stands in r.
func (r *run) admit(ctx context.Context) error {
	req := &r.req
	if req.Kind == "" {
		req.Kind = belljar.KindScript
	}
	r.res.Kind = req.Kind
	if refusal := checkWords(req); refusal != nil {
		return refusal
	}
	if refusal := checkSource(req); refusal != nil {
		return refusal
	}
	if err := r.resolve(ctx); err != nil {
		return err
	}
	if req.Name == "" {
		req.Name = r.lang.File
	}
	var refusal *belljar.Refusal
	if r.files, refusal = checkFiles(req.Files, req.Name, req.Source); refusal != nil {
		return refusal
	}
	if refusal = checkArgs(req.Args); refusal != nil {
		return refusal
	}
	if refusal = checkEnv(req.Env); refusal != nil {
		return refusal
	}
	if r.res.Limits, refusal = r.e.cfg.Limits.apply(req, r.lang); refusal != nil {
		return refusal
	}
	if need := space(r.files); need > r.res.Limits.DiskBytes {
		return belljar.Refuse(belljar.CodeBadLimit, "Send less, or allow more disk.",
			"the files of the request need %d bytes of the workspace's %d.", need, r.res.Limits.DiskBytes)
	}
	if refusal = r.checkIsolation(); refusal != nil {
		return refusal
	}
	return r.mayRun()
}

// checkWords looks at what names things: nothing here comes from a program.
func checkWords(req *belljar.Request) *belljar.Refusal {
	if req.Kind != belljar.KindScript && req.Kind != belljar.KindSnippet {
		return belljar.Refuse(belljar.CodeBadRequest, "Use script or snippet.", "there is no kind of run %q.", cut(string(req.Kind), 40))
	}
	if len(req.Session) > maxWord || strings.ContainsFunc(req.Session, func(c rune) bool { return c < 0x20 || c == 0x7f || c == utf8.RuneError }) {
		return belljar.Refuse(belljar.CodeBadRequest, "Use a short name without control characters.", "this is no name for a session.")
	}
	for _, list := range [][]string{req.Tools, req.Fence} {
		if len(list) > maxNames {
			return belljar.Refuse(belljar.CodeBadRequest, "Name fewer tools.", "a list of tools has %d names; %d are allowed.", len(list), maxNames)
		}
		for _, name := range list {
			if name == "" || len(name) > maxWord {
				return belljar.Refuse(belljar.CodeBadRequest, "Name the tools as they are listed.", "%q is no name of a tool.", cut(name, 40))
			}
		}
	}
	if len(req.Stdin) > maxStdinBytes {
		return belljar.Refuse(belljar.CodeBadRequest, "Send it as a file of the request.", "stdin holds %d bytes; %v are allowed.", len(req.Stdin), Size(maxStdinBytes))
	}
	if req.Network != "" && req.Network != "none" {
		return belljar.Refuse(belljar.CodeNetwork, `Use "none", and reach the network through a tool.`, "a run has no network, and %q cannot be had.", cut(req.Network, 40))
	}
	return nil
}

func checkSource(req *belljar.Request) *belljar.Refusal {
	switch {
	case strings.TrimSpace(req.Source) == "":
		return belljar.Refuse(belljar.CodeEmptySource, "Send the whole program as source.", "%s called with empty code.", output.CallName(req.Kind))
	case len(req.Source) > maxSourceChars*utf8.UTFMax || utf8.RuneCountInString(req.Source) > maxSourceChars:
		return belljar.Refuse(belljar.CodeSourceTooLarge, "Put data into files of the request or on stdin.",
			"the source has more than %d characters.", maxSourceChars)
	case !utf8.ValidString(req.Source):
		return belljar.Refuse(belljar.CodeBadRequest, "Send the source as UTF-8.", "the source is not UTF-8.")
	case strings.ContainsRune(req.Source, 0): // some interpreters silently stop there
		return belljar.Refuse(belljar.CodeBadRequest, "Write it as an escape in the program.", "the source holds a NUL.")
	}
	return nil
}

// resolve finds the language.
func (r *run) resolve(ctx context.Context) error {
	name := r.req.Lang
	if name == "" && r.req.Kind == belljar.KindScript {
		name = scriptLanguage
	}
	runnable := func() []string {
		all, _ := r.e.parts.Languages.All() // a broken entry runs nothing
		if r.req.Kind == belljar.KindScript {
			all = slices.DeleteFunc(all, func(l *language.Language) bool { return !l.Scripts() })
		}
		return r.e.parts.Toolchains.Runnable(ctx, all)
	}
	if name == "" {
		return belljar.Refuse(belljar.CodeBadRequest, "Languages that run here: "+strings.Join(runnable(), ", ")+".", "lang is missing.")
	}
	l, err := r.e.parts.Languages.Resolve(name, runnable)
	if refusal, ok := errors.AsType[*belljar.Refusal](err); ok {
		return refusal
	}
	if err != nil {
		return &fault{"the description of a language is broken", fmt.Errorf("resolve language: %w", err)}
	}
	if r.req.Kind == belljar.KindScript && !l.Scripts() {
		return belljar.Refuse(belljar.CodeUnknownLanguage, "Languages for scripts: "+strings.Join(runnable(), ", ")+". Or use run_snippet, without tools.",
			"cannot run '%s' as a script: its programs cannot call tools.", l.Name)
	}
	r.lang, r.res.Lang = l, l.Name
	return nil
}

// checkIsolation settles the least level: a request can only raise it.
func (r *run) checkIsolation() *belljar.Refusal {
	r.minimum = r.e.cfg.Minimum
	asked := r.req.Isolation
	if asked == "" {
		return nil
	}
	if asked.Rank() < 0 {
		return belljar.Refuse(belljar.CodeBadRequest, "Use one of process, landlock, namespaces, gvisor.", "%q is no isolation level.", cut(string(asked), 40))
	}
	if asked.Rank() > r.minimum.Rank() {
		r.minimum = asked
	}
	return nil
}

// mayRun asks the policy about the run itself.
func (r *run) mayRun() error {
	d := r.e.parts.Policy.Decide(policy.Question{Caller: r.req.Caller, Via: policy.ViaDirect, Run: r.req.Kind})
	switch d.Answer {
	case policy.Allow:
		return nil
	case policy.Ask:
		return belljar.Refuse(belljar.CodeConsentNobody, d.Hint, "%s needs a person's consent, and nobody can be asked here.", output.CallName(r.req.Kind))
	}
	return &belljar.Refusal{Code: belljar.CodePolicyDenied, Reason: d.Reason, Hint: d.Hint}
}
