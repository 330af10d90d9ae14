package toolset

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
	"github.com/belljar/belljar/internal/toolset/upstream"
)

// refresh asks those servers for their tools that were not asked yet or say that
// their list has changed, all at once, and gives the new tools their names. It
// returns everything there is to complain of, also of servers that were not asked
// again.
func (s *Set) refresh(ctx context.Context) []error {
	if len(s.servers) == 0 {
		return nil
	}
	select {
	case s.listing <- struct{}{}:
	case <-ctx.Done():
		return []error{fmt.Errorf("list the tools of MCP servers: %w", ctx.Err())}
	}
	defer func() { <-s.listing }()

	failures := make([]error, len(s.servers))
	asked := false
	var wg sync.WaitGroup
	for i, one := range s.servers {
		if one.broken != nil {
			failures[i] = one.broken
			continue
		}
		if one.listed && !one.client.Stale() {
			continue
		}
		asked = true
		wg.Go(func() {
			tools, problems, err := one.client.List(ctx)
			if err != nil {
				failures[i] = err // an older list stays good
				return
			}
			one.tools, one.problems, one.listed = tools, problems, true
		})
	}
	wg.Wait()

	var errs []error
	for i, one := range s.servers {
		if failures[i] != nil {
			errs = append(errs, failures[i])
		}
		errs = append(errs, one.problems...)
	}
	if asked {
		s.name()
	}
	return append(errs, s.leftOut()...)
}

// name builds the table of what can be called from what the servers listed.
func (s *Set) name() {
	type source struct {
		server *server
		tool   upstream.Tool
	}
	var claims []claim
	sources := map[string]source{}
	for _, one := range s.servers {
		one.unnamed = nil
		for _, t := range one.tools {
			id, err := normalise(t.Name)
			if err != nil {
				one.unnamed = append(one.unnamed, fmt.Errorf("MCP server %s: %w; it is left out", plain.Quote(one.name), err))
				continue
			}
			c := claim{server: one.name, original: t.Name, name: id}
			claims = append(claims, c)
			if _, twice := sources[c.key()]; !twice {
				sources[c.key()] = source{one, t}
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bound)+len(claims) > maxNames {
		s.clashes = []error{fmt.Errorf("MCP servers have named more than %d tools; later changes of their lists are not followed", maxNames)}
		return
	}
	given, clashes := assign(s.bound, claims)
	s.clashes = clashes
	s.remotes = make(map[string]*remote, len(given))
	s.wanted = wanted(claims, given)
	for _, c := range claims {
		name, ok := given[c.key()]
		if !ok || s.remotes[name] != nil {
			continue
		}
		src := sources[c.key()]
		s.remotes[name] = &remote{client: src.server.client, original: c.original, wanted: c.name, tool: belljar.Tool{
			Name: name, Description: src.tool.Description, Source: c.server, Forms: c.forms(name),
			InputSchema: src.tool.InputSchema, OutputSchema: unwrapSchema(src.tool.OutputSchema),
		}}
	}
}

// leftOut names the tools that could be given no name.
func (s *Set) leftOut() []error {
	var errs []error
	for _, one := range s.servers {
		errs = append(errs, one.unnamed...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(errs, s.clashes)
}
