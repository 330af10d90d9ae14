package toolset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// maxMCPFile is the largest mcp.json, in bytes.
const maxMCPFile = 1 << 20

// readMCPFile reads the file that MCP clients share: {"mcpServers": {name:
// {command, args, env, cwd}}}, or VS Code's "servers". A file of another shape is
// refused; an entry that we cannot run is in broken, so that the others still
// work and nothing is dropped in silence.
func readMCPFile(name string) (servers map[string]Server, broken map[string]error, err error) {
	data, err := readSmall(name)
	if err != nil {
		return nil, nil, refuse("Name a file in the usual mcp.json shape.", "The MCP configuration %s cannot be read: %v.", name, err)
	}
	wrong := func(reason string) error {
		return refuse(`The shape is {"mcpServers": {"<name>": {"command": "...", "args": [...], "env": {...}}}}.`,
			"The MCP configuration %s %s.", name, reason)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
			return nil, nil, wrong(fmt.Sprintf("is no JSON: line %d: %s", line, syntax))
		}
		return nil, nil, wrong("is no JSON object")
	}
	raw, usual := top["mcpServers"]
	vscode, other := top["servers"]
	switch {
	case usual && other:
		return nil, nil, wrong(`has both "mcpServers" and "servers"`)
	case other:
		raw = vscode
	case !usual:
		return nil, nil, wrong(`has no "mcpServers"`)
	}
	var entries map[string]json.RawMessage
	if json.Unmarshal(raw, &entries) != nil || entries == nil {
		return nil, nil, wrong("does not hold an object of servers by name")
	}
	base, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, nil, fmt.Errorf("find the folder of %s: %w", name, err)
	}
	servers, broken = map[string]Server{}, map[string]error{}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		s, off, err := readEntry(entries[key])
		switch {
		case err != nil:
			broken[key] = fmt.Errorf("%s: MCP server %s %w", name, plain.Quote(key), err)
		case !off:
			s.base = base
			servers[key] = s
		}
	}
	return servers, broken, nil
}

// readSmall reads a file that is meant to be small, and never waits on a pipe.
func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMCPFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxMCPFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxMCPFile)
	}
	return data, nil
}

// readEntry reads one server. off is true for an entry that is switched off.
func readEntry(raw json.RawMessage) (s Server, off bool, err error) {
	var e map[string]json.RawMessage
	if json.Unmarshal(raw, &e) != nil || e == nil {
		return s, false, errors.New("is not an object")
	}
	for _, key := range []string{"url", "serverUrl", "httpUrl"} {
		if _, has := e[key]; has {
			return s, false, fmt.Errorf("is reached by %q; only servers with a command can be used", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e)) {
		var into any
		want := "a string"
		switch key {
		case "command":
			into = &s.Command
		case "cwd":
			into = &s.Cwd
		case "args":
			into, want = &s.Args, "a list of strings"
		case "env":
			into, want = &s.Env, "an object of strings"
		case "disabled":
			into, want = &off, "true or false"
		case "type", "transport":
			var t string
			if json.Unmarshal(e[key], &t) != nil || t != "stdio" {
				return s, false, fmt.Errorf("has the %s %s; only stdio can be used", key, plain.Line(string(e[key]), 60))
			}
			continue
		case "alwaysAllow", "autoApprove", "description", "timeout", "version", "gallery":
			continue // other clients' business; harmless to leave aside
		default:
			// It may narrow what the server offers or add to what it needs.
			return s, false, fmt.Errorf("has the unknown key %s", plain.Quote(key))
		}
		if err := json.Unmarshal(e[key], into); err != nil || string(e[key]) == "null" {
			return s, false, fmt.Errorf("has a %q that is not %s", key, want)
		}
	}
	return s, off, nil
}
