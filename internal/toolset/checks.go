package toolset

import (
	"context"
	"fmt"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
)

// Checks says how the workspace and the upstream servers are. It starts nothing:
// a server that nothing has needed yet is not in the list, so call [Set.Tools]
// first to learn about all of them.
func (s *Set) Checks(context.Context) []belljar.Check {
	var checks []belljar.Check
	if s.folder != nil {
		c := belljar.Check{Name: "workspace", State: belljar.CheckOK, Meaning: fmt.Sprintf("the file tools read %s", plain.Quote(s.folder.Name()))}
		if err := s.folder.Check(); err != nil {
			c.State, c.Meaning = belljar.CheckFail, plain.Line(err.Error(), 300)
			c.Remedy = "name a folder that this user can read"
		}
		checks = append(checks, c)
	}
	for _, one := range s.servers {
		c := belljar.Check{Name: "mcp server " + one.name, State: belljar.CheckFail, Remedy: "see its entry in the configuration; try its command by hand"}
		if one.broken != nil {
			c.Meaning = plain.Line(one.broken.Error(), 500)
			c.Remedy = "correct its entry in the configuration"
			checks = append(checks, c)
			continue
		}
		running, why := one.client.State()
		switch {
		case running:
			c.State, c.Meaning, c.Remedy = belljar.CheckOK, "running and speaks MCP", ""
		case why != nil:
			c.Meaning = plain.Line(why.Error(), 900)
		default:
			continue
		}
		checks = append(checks, c)
	}
	return checks
}
