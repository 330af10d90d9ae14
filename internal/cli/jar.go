package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/audit"
	"github.com/belljar/belljar/internal/mcpserver"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/toolset"
	"github.com/belljar/belljar/jar"
)

// Config is the whole configuration.
type Config = jar.Config

// openJar opens a jar as this configuration has it.
func openJar(ctx context.Context, s *settings, log *slog.Logger) (Engine, error) {
	j, err := jar.Open(ctx, jar.WithConfig(s.Config), jar.WithLogger(log))
	if err != nil {
		return nil, s.located(err)
	}
	return &openedJar{Jar: j, Runner: j.Runner(), located: s.located}, nil
}

// located says of each key that an error names where it was set.
func (s *settings) located(err error) error {
	if r, ok := errors.AsType[*belljar.Refusal](err); ok && r.Code == belljar.CodeBadConfig {
		return belljar.Refuse(r.Code, r.Hint, "%s", s.Locate(r.Reason))
	}
	return err
}

// openedJar is a jar as the commands want it.
type openedJar struct {
	*jar.Jar
	jar.Runner // its Run has the events as a parameter
	located    func(error) error
}

func (o *openedJar) Run(ctx context.Context, req *belljar.Request, events func(belljar.Event)) (*belljar.Result, error) {
	res, err := o.Runner.Run(ctx, req, events)
	if err == nil && res.Refusal != nil { // what only shows when a part is first needed
		if refusal, ok := errors.AsType[*belljar.Refusal](o.located(res.Refusal)); ok {
			why := refusal.Error()
			res.Refusal, res.Error = refusal, &why
		}
	}
	return res, err
}

func (o *openedJar) Tools(ctx context.Context, selection, fence []string) ([]Tool, []error) {
	all, problems := o.Jar.Tools(ctx)
	tools := make([]Tool, 0, len(all))
	for _, t := range all {
		d := o.Decide(t, selection, fence)
		tool := Tool{Tool: t, Signature: toolset.Signature(t)}
		if d.Answer == policy.Deny {
			tool.Code, tool.Why, tool.Hint = d.Code, d.Reason, d.Hint
		}
		tools = append(tools, tool)
	}
	return tools, problems
}

// Describe fills in what the description of execute_code tells.
func (o *openedJar) Describe(opt *mcpserver.Options) {
	standard, ceiling := o.Bounds(belljar.KindScript, "python")
	opt.Timeout, opt.MaxTimeout, opt.Chars = standard.Timeout, ceiling.Timeout, standard.OutputChars
	opt.Langs = func(ctx context.Context) []string { return o.Languages(ctx, belljar.KindScript) }
	opt.Signature, opt.MaxCalls = toolset.Signature, o.MaxCalls()
}

// records reads the journal alone: nothing else has to work for that.
func records(ctx context.Context, s *settings, f audit.Filter) ([]belljar.Record, error) {
	j, err := audit.Open(s.Config.Audit)
	if err != nil {
		return nil, s.located(err)
	}
	list, err := j.List(ctx, f)
	return list, errors.Join(err, j.Close())
}
