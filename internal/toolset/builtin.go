package toolset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
	"github.com/belljar/belljar/internal/toolset/workspace"
)

// sourceBuiltin is the Source of the built-in tools, sourceGo that of functions
// of the embedding program.
const (
	sourceBuiltin = "builtin"
	sourceGo      = "go"
)

// A local tool runs in this process; its arguments were checked.
type local struct {
	tool belljar.Tool
	args *argSpec
	call func(ctx context.Context, args json.RawMessage) (belljar.Value, error)
}

func builtin(name, description, input, output string, call func(context.Context, json.RawMessage) (belljar.Value, error)) *local {
	t := belljar.Tool{
		Name: name, Description: description, Source: sourceBuiltin, ReadOnly: true,
		InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output),
		Forms: []string{name, sourceBuiltin + "_" + name, sourceBuiltin + "." + name},
	}
	return &local{tool: t, args: newArgSpec(t), call: call}
}

// take reads checked arguments into a struct.
func take[T any](args json.RawMessage) (T, error) {
	var v T
	if err := json.Unmarshal(args, &v); err != nil {
		return v, fmt.Errorf("read arguments: %w", err)
	}
	return v, nil
}

func jsonValue(v any, err error) (belljar.Value, error) {
	if err != nil {
		return belljar.Value{}, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // code is full of < and &
	if err := enc.Encode(v); err != nil {
		return belljar.Value{}, fmt.Errorf("encode the answer: %w", err)
	}
	return belljar.Value{Kind: belljar.ValueJSON, Data: bytes.TrimSuffix(buf.Bytes(), []byte("\n"))}, nil
}

const pathDoc = `"description": "relative to the workspace; links are followed only inside it"`

// workspaceTools are the read-only tools on a folder.
func workspaceTools(w *workspace.Workspace) []*local {
	return []*local{
		builtin("read_file",
			`Read a text file of the workspace, exactly as it is stored.
The whole file is returned, up to 4 MiB; a larger answer is an error that gives the size. Choose a part with start_line and max_lines, or its beginning with max_chars. Text only: binary files (bytes that are no UTF-8) are refused unless errors="replace".`,
			`{"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
				"path": {"type": "string", `+pathDoc+`},
				"start_line": {"type": "integer", "minimum": 1, "default": 1, "description": "first line, counted from 1"},
				"max_lines": {"type": ["integer", "null"], "minimum": 1, "default": null, "description": "lines to read; None: all"},
				"max_chars": {"type": ["integer", "null"], "minimum": 1, "maximum": 4194304, "default": null, "description": "characters to read; None: all"},
				"errors": {"type": "string", "enum": ["strict", "replace"], "default": "strict", "description": "what to do with bytes that are no UTF-8"}}}`,
			`{"type": "string"}`,
			func(ctx context.Context, args json.RawMessage) (belljar.Value, error) {
				a, err := take[struct {
					Path      string `json:"path"`
					StartLine int    `json:"start_line"`
					MaxLines  int    `json:"max_lines"`
					MaxChars  int    `json:"max_chars"`
					Errors    string `json:"errors"`
				}](args)
				if err != nil {
					return belljar.Value{}, err
				}
				data, err := w.Read(ctx, a.Path, workspace.ReadOptions{
					StartLine: a.StartLine, MaxLines: a.MaxLines, MaxChars: a.MaxChars, Replace: a.Errors == "replace"})
				if err != nil {
					return belljar.Value{}, err
				}
				return belljar.Value{Kind: belljar.ValueText, Data: data}, nil
			}),
		builtin("list_dir",
			`List one folder of the workspace: a list of {name, type, size}, sorted by name.
type is "file", "folder", "link" or "other"; size is in bytes, None for all but files. Hidden entries are included. Nothing is cut: more than 20,000 entries are an error.`,
			`{"type": "object", "additionalProperties": false, "properties": {
				"path": {"type": "string", "default": ".", `+pathDoc+`}}}`,
			`{"type": "array", "items": {"type": "object", "required": ["name", "type", "size"], "properties": {
				"name": {"type": "string"},
				"type": {"type": "string", "enum": ["file", "folder", "link", "other"]},
				"size": {"type": ["integer", "null"]}}}}`,
			func(ctx context.Context, args json.RawMessage) (belljar.Value, error) {
				a, err := take[struct {
					Path string `json:"path"`
				}](args)
				if err != nil {
					return belljar.Value{}, err
				}
				return jsonValue(w.List(ctx, a.Path))
			}),
		builtin("find_files",
			`Find files of the workspace by a glob over their paths: a list of paths that read_file takes.
The pattern knows * ? [a-z] [!a-z] {a,b} and **. One without a slash matches the name at any depth (*.go), ./* only directly in path, and ** crosses folders (src/**/*.go). Names that begin with a dot match only where the pattern writes the dot; .git is never entered. Links are neither listed nor followed. Nothing is cut: more than 20,000 paths are an error, unless max_results=N takes the first N.`,
			`{"type": "object", "additionalProperties": false, "required": ["pattern"], "properties": {
				"pattern": {"type": "string", "description": "for instance *.py or src/**/*.{ts,tsx}"},
				"path": {"type": "string", "default": ".", "description": "the folder to look in, relative to the workspace"},
				"max_results": {"type": ["integer", "null"], "minimum": 1, "maximum": 100000, "default": null, "description": "take the first N; None: all, up to 20,000"}}}`,
			`{"type": "array", "items": {"type": "string"}}`,
			func(ctx context.Context, args json.RawMessage) (belljar.Value, error) {
				a, err := take[struct {
					Pattern string `json:"pattern"`
					Path    string `json:"path"`
					Max     int    `json:"max_results"`
				}](args)
				if err != nil {
					return belljar.Value{}, err
				}
				return jsonValue(w.Find(ctx, a.Pattern, a.Path, a.Max))
			}),
		builtin("search_files",
			`Search the text files of the workspace line by line: a list of {path, line, text}.
The pattern is an RE2 regular expression. path is a folder or one file; glob chooses the files: *.go at any depth, ./* only directly in path, ** crosses folders, as in find_files. Binary and hidden files are passed over, links not followed. A text of more than 2,000 characters is cut and then has cut: true. No match is left out: more than 20,000 are an error, unless max_results=N takes the first N, and so are more than 2 GiB of files to read; narrow path or glob then.`,
			`{"type": "object", "additionalProperties": false, "required": ["pattern"], "properties": {
				"pattern": {"type": "string", "description": "an RE2 regular expression"},
				"path": {"type": "string", "default": ".", "description": "a folder or one file, relative to the workspace"},
				"glob": {"type": "string", "default": "**", "description": "which files, as in find_files"},
				"max_results": {"type": ["integer", "null"], "minimum": 1, "maximum": 100000, "default": null, "description": "take the first N; None: all, up to 20,000"},
				"ignore_case": {"type": "boolean", "default": false}}}`,
			`{"type": "array", "items": {"type": "object", "required": ["path", "line", "text"], "properties": {
				"path": {"type": "string"},
				"line": {"type": "integer", "description": "counted from 1"},
				"text": {"type": "string"},
				"cut": {"type": "boolean"}}}}`,
			func(ctx context.Context, args json.RawMessage) (belljar.Value, error) {
				a, err := take[struct {
					Pattern    string `json:"pattern"`
					Path       string `json:"path"`
					Glob       string `json:"glob"`
					Max        int    `json:"max_results"`
					IgnoreCase bool   `json:"ignore_case"`
				}](args)
				if err != nil {
					return belljar.Value{}, err
				}
				return jsonValue(w.Search(ctx, a.Pattern, workspace.SearchOptions{
					Path: a.Path, Glob: a.Glob, Max: a.Max, IgnoreCase: a.IgnoreCase}))
			}),
	}
}

// clock is current_time.
func clock(now func() time.Time) *local {
	return builtin("current_time",
		`Tell the time: {iso, unix, timezone, utc_offset, date, time, weekday}.`,
		`{"type": "object", "additionalProperties": false, "properties": {
			"timezone": {"type": "string", "default": "UTC", "description": "an IANA name such as Europe/Berlin"}}}`,
		`{"type": "object", "required": ["iso", "unix", "timezone", "utc_offset", "date", "time", "weekday"], "properties": {
			"iso": {"type": "string", "description": "RFC 3339, to the second"},
			"unix": {"type": "number", "description": "seconds since 1970, to the millisecond"},
			"timezone": {"type": "string"},
			"utc_offset": {"type": "string", "description": "such as +02:00"},
			"date": {"type": "string"},
			"time": {"type": "string"},
			"weekday": {"type": "string"}}}`,
		func(_ context.Context, args json.RawMessage) (belljar.Value, error) {
			a, err := take[struct {
				Timezone string `json:"timezone"`
			}](args)
			if err != nil {
				return belljar.Value{}, err
			}
			return jsonValue(tell(now(), a.Timezone))
		})
}

// A moment is what current_time answers.
type moment struct {
	ISO       string  `json:"iso"`
	Unix      float64 `json:"unix"`
	Timezone  string  `json:"timezone"`
	UTCOffset string  `json:"utc_offset"`
	Date      string  `json:"date"`
	Time      string  `json:"time"`
	Weekday   string  `json:"weekday"`
}

var zoneName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)
})

func tell(now time.Time, zone string) (moment, error) {
	// The name becomes a path beneath the zone folder, so its form is held here
	// too, and "Local" would tell where the host is.
	unknown := fmt.Errorf("there is no time zone %s; give an IANA name such as Europe/Berlin", plain.Quote(zone))
	if len(zone) > 64 || !zoneName().MatchString(zone) || strings.EqualFold(zone, "local") {
		return moment{}, unknown
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return moment{}, unknown
	}
	t := now.In(loc)
	return moment{
		ISO: t.Format(time.RFC3339), Unix: float64(t.UnixMilli()) / 1000, Timezone: zone,
		UTCOffset: t.Format("-07:00"), Date: t.Format(time.DateOnly), Time: t.Format(time.TimeOnly), Weekday: t.Weekday().String(),
	}, nil
}

// toolError makes the error that a script is told of any error of a tool.
func toolError(tool string, err error) *belljar.ToolError {
	var te *belljar.ToolError
	if errors.As(err, &te) {
		if te.Tool == "" {
			named := *te
			named.Tool = tool
			return &named
		}
		return te
	}
	code := "failed"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = "timeout"
	case errors.Is(err, context.Canceled):
		code = "cancelled"
	}
	return &belljar.ToolError{Tool: tool, Code: code, Reason: plain.Clean(err.Error(), 4096)}
}
