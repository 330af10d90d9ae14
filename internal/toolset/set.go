package toolset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
	"github.com/belljar/belljar/internal/toolset/upstream"
	"github.com/belljar/belljar/internal/toolset/workspace"
)

// maxServers and maxNames bound what a configuration and what servers that keep
// changing their lists can make of a Set.
const (
	maxServers = 64
	maxNames   = 20_000
)

// A Set is all tools. It is safe for concurrent use.
type Set struct {
	folder  *workspace.Workspace // nil: not opened
	locals  map[string]*local
	servers []*server // by name

	listing chan struct{} // held while servers are asked for their tools

	mu      sync.Mutex
	closed  bool
	bound   map[string]string  // every name ever given, to its claim's key; "" for local tools
	remotes map[string]*remote // what can be called now, by name
	wanted  map[string]int     // how many tools the name could mean, see wanted
	clashes []error            // tools that found no free name
}

// A server is one configured upstream. What it listed is guarded by Set.listing.
type server struct {
	name     string
	client   *upstream.Client // nil when broken
	broken   error            // why it can never be started
	listed   bool
	tools    []upstream.Tool
	problems []error // what the list had to be given without
	unnamed  []error // tools whose names cannot be used
}

// A remote is a tool of an upstream.
type remote struct {
	tool     belljar.Tool
	client   *upstream.Client
	original string
	wanted   string // the name it would have if nobody else wanted it
}

// Open opens the workspace and reads the configuration; upstream servers are not
// started. Errors are refusals with code bad_config. A server that can never work
// (its address is a URL, a variable is missing) is no error here: [Set.Tools] and
// [Set.Checks] name it.
func Open(cfg Config) (*Set, error) {
	s := &Set{locals: map[string]*local{}, bound: map[string]string{}, remotes: map[string]*remote{}, listing: make(chan struct{}, 1)}
	s.addLocal(clock(time.Now))
	if cfg.Workspace != "" {
		w, err := workspace.Open(cfg.Workspace)
		if err != nil {
			return nil, refuse("Name a folder that can be read.", "The workspace %s %v.", plain.Quote(cfg.Workspace), err)
		}
		s.folder = w
		for _, l := range workspaceTools(w) {
			s.addLocal(l)
		}
	}
	err := s.addFuncs(cfg.Funcs)
	if err == nil {
		err = s.addServers(cfg)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Set) addLocal(l *local) {
	s.locals[l.tool.Name] = l
	s.bound[l.tool.Name] = ""
}

func (s *Set) addFuncs(funcs []Func) error {
	for _, f := range funcs {
		t := f.Tool
		name := plain.Quote(t.Name)
		switch {
		case !identifier(t.Name) || keyword(t.Name) || len(t.Name) > maxToolName:
			return refuse("Give it a name of letters, digits and '_'.", "The Go tool %s has a name that is no identifier.", name)
		case s.locals[t.Name] != nil:
			return refuse("Give it another name.", "The Go tool %s has the name of another tool.", name)
		case f.Call == nil:
			return refuse("Set Func.Call.", "The Go tool %s has nothing to call.", name)
		case len(t.InputSchema) > 0 && parseSchema(t.InputSchema) == nil:
			return refuse("Give it a JSON Schema object of at most 64 KiB.", "The Go tool %s has a schema that cannot be read.", name)
		}
		t.Source = sourceGo
		t.Forms = []string{t.Name, sourceGo + "_" + t.Name, sourceGo + "." + t.Name}
		s.addLocal(&local{tool: t, args: newArgSpec(t), call: f.Call})
	}
	return nil
}

func (s *Set) addServers(cfg Config) error {
	servers, broken := map[string]Server{}, map[string]error{}
	if cfg.MCPConfig != "" {
		var err error
		if servers, broken, err = readMCPFile(cfg.MCPConfig); err != nil {
			return err
		}
	}
	for name, one := range cfg.Servers {
		if _, twice := servers[name]; twice || broken[name] != nil {
			return refuse("Remove one of the two, or rename it.", "The MCP server %s is configured twice: in [mcp_servers] and in %s.", plain.Quote(name), cfg.MCPConfig)
		}
		servers[name] = one
	}
	names := slices.Sorted(maps.Keys(servers))
	if len(names) > maxServers {
		return refuse("Configure fewer.", "%d MCP servers are configured, more than %d.", len(names), maxServers)
	}
	prefixes := map[string]string{}
	for _, name := range names {
		if name == "" || len(name) > maxServerName || !utf8.ValidString(name) || plain.Line(name, maxServerName) != name {
			return refuse("Use a short name of printable characters.", "The MCP server name %s cannot be used.", plain.Quote(name))
		}
		// Two servers with one prefix would answer to each other's names in a
		// policy.
		if twin, ok := prefixes[prefix(name)]; ok {
			return refuse("Rename one of them.", "The MCP servers %s and %s look the same in the names of tools.", plain.Quote(twin), plain.Quote(name))
		}
		prefixes[prefix(name)] = name
		one := &server{name: name}
		if plan, err := servers[name].plan(name, os.LookupEnv); err != nil {
			one.broken = err
		} else {
			if cfg.tune != nil {
				cfg.tune(&plan)
			}
			one.client = upstream.New(plan)
		}
		s.servers = append(s.servers, one)
	}
	for name, err := range broken {
		s.servers = append(s.servers, &server{name: name, broken: err})
	}
	slices.SortFunc(s.servers, func(a, b *server) int { return cmp.Compare(a.name, b.name) })
	return nil
}

// Close ends the upstream servers and waits until they are gone. Calls after it
// fail.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, one := range s.servers {
		if one.client != nil {
			wg.Go(one.client.Close)
		}
	}
	wg.Wait()
	if s.folder != nil {
		return s.folder.Close()
	}
	return nil
}

// Tools returns all tools sorted by name, starting upstream servers that are not
// running and have not been asked yet. The errors name servers that have none to
// offer now, and tools that had to be left out; the tools of the others are there
// all the same. Neither the slice nor what it points to may be changed.
func (s *Set) Tools(ctx context.Context) ([]belljar.Tool, []error) {
	errs := s.refresh(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]belljar.Tool, 0, len(s.locals)+len(s.remotes))
	for _, l := range s.locals {
		list = append(list, l.tool)
	}
	for _, r := range s.remotes {
		list = append(list, r.tool)
	}
	slices.SortFunc(list, func(a, b belljar.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return list, errs
}

// Find returns the tool of that name, or of the name that its server has for it
// ("get-thing.3", "server.get-thing.3") where that can only mean the tool which
// scripts call by the identifier of it. Upstream servers are started only when no
// local tool and no tool seen before has it.
func (s *Set) Find(ctx context.Context, name string) (belljar.Tool, bool) {
	if l, ok := s.locals[name]; ok {
		return l.tool, true
	}
	if r := s.remote(ctx, name); r != nil {
		return r.tool, true
	}
	return belljar.Tool{}, false
}

func (s *Set) remote(ctx context.Context, name string) *remote {
	look := func() *remote {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.named(name)
	}
	if r := look(); r != nil {
		return r
	}
	if id := folded(name); !identifier(id) || len(name) > maxServerName+1+maxToolName || s.locals[id] != nil {
		return nil
	}
	s.refresh(ctx)
	return look()
}

// named finds a tool by what somebody wrote. A name that is no identifier stands
// for the tool that has its identifier, and for no other: policy compares names in
// that form, so it has to give the same answer for both. Called with mu held.
func (s *Set) named(name string) *remote {
	if r := s.remotes[name]; r != nil {
		return r
	}
	id := folded(name)
	r := s.remotes[id]
	if r == nil || id == name {
		return nil
	}
	others := s.wanted[id]
	if r.wanted == id {
		others--
	} else if !slices.Contains(r.tool.Forms, name) {
		return nil // for prefixed names only what policy knows as well
	}
	if others > 0 {
		return nil // it could mean one of them
	}
	return r
}

// Call calls a tool by its name, as [Set.Find] finds it. A failure is a
// *belljar.ToolError with code unknown_tool, bad_arguments, timeout, cancelled or
// failed.
func (s *Set) Call(ctx context.Context, tool string, args json.RawMessage) (belljar.Value, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return belljar.Value{}, &belljar.ToolError{Tool: tool, Code: "failed", Reason: "the tools are closed"}
	}
	if l, ok := s.locals[tool]; ok {
		v, err := l.run(ctx, args)
		if err != nil {
			return belljar.Value{}, toolError(tool, err)
		}
		return v, nil
	}
	r := s.remote(ctx, tool)
	if r == nil {
		return belljar.Value{}, &belljar.ToolError{Tool: tool, Code: "unknown_tool", Reason: fmt.Sprintf("tool '%s' not available", plain.Line(tool, 200))}
	}
	given, err := object(args)
	if err != nil {
		return belljar.Value{}, &belljar.ToolError{Tool: tool, Code: codeBadArguments,
			Reason: fmt.Sprintf("%s: %s; the call is %s", tool, err, Signature(r.tool))}
	}
	if len(given) == 0 {
		args = json.RawMessage("{}")
	}
	v, err := r.client.Call(ctx, r.original, args)
	if err != nil {
		return belljar.Value{}, toolError(tool, err)
	}
	return v, nil
}

// run calls a local tool. A panic in a Go function fails that call alone.
func (l *local) run(ctx context.Context, args json.RawMessage) (v belljar.Value, err error) {
	if err := ctx.Err(); err != nil {
		return v, err
	}
	full, err := l.args.check(args)
	if err != nil {
		return v, err
	}
	defer func() {
		if p := recover(); p != nil {
			v, err = belljar.Value{}, fmt.Errorf("the tool panicked: %v", p)
		}
	}()
	if v, err = l.call(ctx, full); err != nil {
		return belljar.Value{}, err
	}
	switch {
	case v.Kind == belljar.ValueJSON && !json.Valid(v.Data):
		return belljar.Value{}, errors.New("the tool's answer is no JSON")
	case v.Kind == belljar.ValueText && !utf8.Valid(v.Data):
		return belljar.Value{}, errors.New("the tool's answer is no UTF-8 text")
	}
	return v, nil
}
