package jar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"unsafe"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolchain"
	"github.com/belljar/belljar/internal/toolset"
	"github.com/google/jsonschema-go/jsonschema"
)

// Option changes how a Jar is opened. They are applied in order.
type Option func(*options) error

type options struct {
	cfg   Config
	state string
	log   *slog.Logger
	funcs []toolset.Func
}

// WithConfig replaces the configuration, so it goes before the options that change
// a part of it.
func WithConfig(cfg Config) Option {
	return func(o *options) error { o.cfg = cfg; return nil }
}

// WithWorkspace offers the built-in read-only tools on a folder.
func WithWorkspace(path string) Option {
	return func(o *options) error { o.cfg.Workspace.Path = path; return nil }
}

// WithMCPConfig offers the tools of the upstream MCP servers that a file in the
// usual mcp.json shape names. A script reaches those of the curated set and those
// that the policy's extra_tools names.
func WithMCPConfig(path string) Option {
	return func(o *options) error { o.cfg.MCP.Config = path; return nil }
}

// WithExtraTools lets scripts call these tools beside the curated set, as
// policy.extra_tools does. Names are those of [Jar.Tools]. Go functions need no
// mention.
func WithExtraTools(names ...string) Option {
	return func(o *options) error {
		o.cfg.Policy.ExtraTools = slices.Concat(o.cfg.Policy.ExtraTools, names)
		return nil
	}
}

// WithTools lets scripts call these tools instead of the curated set, as
// policy.tools does: no request can reach beyond them, Go functions and
// [WithExtraTools].
func WithTools(names ...string) Option {
	return func(o *options) error { o.cfg.Policy.Tools = slices.Clone(names); return nil }
}

// WithMaxCalls bounds the tool calls of one run; the default is 1000.
func WithMaxCalls(n int) Option {
	return func(o *options) error { o.cfg.Policy.MaxCallsPerRun = n; return nil }
}

// WithPython names the interpreter for Python by its absolute path, for instance a
// virtual environment's: its packages become visible to runs.
func WithPython(path string) Option {
	return func(o *options) error {
		// The table may be that of a configuration that others use too.
		languages := maps.Clone(o.cfg.Languages)
		if languages == nil {
			languages = toolchain.Config{}
		}
		languages["python"] = toolchain.Choice{Interpreter: path}
		o.cfg.Languages = languages
		return nil
	}
}

// WithState keeps the audit journal and what is remembered about interpreters in
// dir, unless the configuration names a journal. The default is
// $BELLJAR_STATE_DIR, else belljar in the user's state folder.
func WithState(dir string) Option {
	return func(o *options) error { o.state = dir; return nil }
}

// WithLogger says where faults are logged; the default is slog.Default().
func WithLogger(log *slog.Logger) Option {
	return func(o *options) error { o.log = log; return nil }
}

// WithFunc offers a Go function to scripts as tools.<name>(...). Its parameters are
// the fields of In, a struct: the JSON name is the parameter's, `omitempty` makes it
// optional, a `jsonschema` tag describes it. Arguments are checked before fn sees
// them. A script gets a string as a string, []byte as bytes, and anything else as the
// value that its JSON stands for. An error is raised in the script with its text.
//
// fn is called from many goroutines at once and has to heed its context, which ends
// with the run.
func WithFunc[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) Option {
	return func(o *options) error {
		input, err := schemaOf[In]()
		if err != nil {
			return fmt.Errorf("tool %s: its parameters have no JSON schema: %w", name, err)
		}
		tool := belljar.Tool{Name: name, Description: description, InputSchema: input}
		switch any(*new(Out)).(type) {
		case []byte: // no schema: bytes are not JSON
		default:
			// A result without a schema is still a result.
			if output, err := schemaOf[Out](); err == nil {
				tool.OutputSchema = output
			}
		}
		o.funcs = append(o.funcs, toolset.Func{Tool: tool, Call: func(ctx context.Context, args json.RawMessage) (belljar.Value, error) {
			var in In
			if err := json.Unmarshal(args, &in); err != nil {
				return belljar.Value{}, &belljar.ToolError{Tool: name, Code: "bad_arguments", Reason: fmt.Sprintf("%s: %v", name, err)}
			}
			out, err := fn(ctx, in)
			if err != nil {
				if own, ok := errors.AsType[*belljar.ToolError](err); ok {
					return belljar.Value{}, own
				}
				return belljar.Value{}, &belljar.ToolError{Tool: name, Code: "failed", Reason: err.Error()}
			}
			return valueOf(out)
		}})
		return nil
	}
}

func schemaOf[T any]() (json.RawMessage, error) {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(schema)
}

// valueOf makes of a Go value what a script gets.
func valueOf(v any) (belljar.Value, error) {
	switch v := v.(type) {
	case string:
		// The bytes of the string itself: nobody writes to a Value's data, and a copy
		// of every answer would be what a large one costs most.
		return belljar.Value{Kind: belljar.ValueText, Data: unsafe.Slice(unsafe.StringData(v), len(v))}, nil
	case []byte:
		return belljar.Value{Kind: belljar.ValueBytes, Data: v, MediaType: "application/octet-stream"}, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return belljar.Value{}, fmt.Errorf("make JSON of the answer: %w", err)
	}
	return belljar.Value{Kind: belljar.ValueJSON, Data: data}, nil
}
