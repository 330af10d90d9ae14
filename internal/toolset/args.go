package toolset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
)

// codeBadArguments is the code of a call whose arguments do not fit the schema.
const codeBadArguments = "bad_arguments"

// argSpec is what the arguments of a local tool are held against: its schema,
// read once.
type argSpec struct {
	tool   string
	sig    string
	open   bool // the schema cannot be read: any object will do
	closed bool // no other parameters
	params []argParam
}

type argParam struct {
	name      string
	required  bool
	types     []string
	enum      []json.RawMessage
	enumText  string
	low, high *float64
	fallback  json.RawMessage
}

func newArgSpec(t belljar.Tool) *argSpec {
	a := &argSpec{tool: t.Name, sig: Signature(t)}
	s := parseSchema(t.InputSchema)
	list, ok := s.params()
	if !ok {
		a.open = true
		return a
	}
	a.closed = string(s.fields["additionalProperties"]) == "false"
	for _, p := range list {
		d := p.schema.deref()
		ap := argParam{name: p.name, required: p.required, types: d.types(), enum: d.list("enum"), fallback: p.schema.fields["default"]}
		ap.enumText = plain.Line(string(d.fields["enum"]), 200)
		if n, ok := number(d.fields["minimum"]); ok {
			ap.low = &n
		}
		if n, ok := number(d.fields["maximum"]); ok {
			ap.high = &n
		}
		a.params = append(a.params, ap)
	}
	return a
}

// check returns the arguments with the defaults filled in. It looks at the
// parameters, not inside them: known, present, of the right type, within minimum,
// maximum and enum. None for an optional parameter means that it was left out.
// The error names the parameter and shows the signature, so that a script's
// author can put it right.
func (a *argSpec) check(args json.RawMessage) (json.RawMessage, error) {
	bad := func(format string, v ...any) error {
		return &belljar.ToolError{Tool: a.tool, Code: codeBadArguments,
			Reason: fmt.Sprintf("%s: %s; the call is %s", a.tool, fmt.Sprintf(format, v...), a.sig)}
	}
	given, err := object(args)
	if err != nil {
		return nil, bad("%s", err)
	}
	if a.open {
		return args, nil
	}
	if a.closed {
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.ContainsFunc(a.params, func(p argParam) bool { return p.name == name }) {
				known := make([]string, len(a.params))
				for i, p := range a.params {
					known[i] = p.name
				}
				if meant := near(name, known); meant != "" {
					return nil, bad("there is no parameter %s, did you mean %s", plain.Quote(name), plain.Quote(meant))
				}
				return nil, bad("there is no parameter %s", plain.Quote(name))
			}
		}
	}
	for _, p := range a.params {
		value, has := given[p.name]
		if has && !p.required && string(value) == "null" {
			delete(given, p.name)
			has = false
		}
		switch {
		case !has && p.required:
			return nil, bad("the parameter %s is missing", plain.Quote(p.name))
		case !has:
			if p.fallback != nil && string(p.fallback) != "null" {
				given[p.name] = p.fallback
			}
		default:
			if err := p.check(value); err != nil {
				return nil, bad("the parameter %s %s", plain.Quote(p.name), err)
			}
			if slices.Contains(p.types, "integer") {
				given[p.name] = plainInteger(value)
			}
		}
	}
	out, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("encode arguments: %w", err)
	}
	return out, nil
}

// object reads arguments as the JSON object they have to be. No arguments at all
// are an empty one.
func object(args json.RawMessage) (map[string]json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		return map[string]json.RawMessage{}, nil
	}
	var m map[string]json.RawMessage
	if args[0] != '{' {
		return nil, fmt.Errorf("the arguments are no JSON object")
	}
	if err := json.Unmarshal(args, &m); err != nil {
		return nil, fmt.Errorf("the arguments are no JSON object: %s", plain.Line(err.Error(), 100))
	}
	return m, nil
}

func (p argParam) check(value json.RawMessage) error {
	if len(p.types) > 0 && !slices.ContainsFunc(p.types, func(t string) bool { return isType(value, t) }) {
		return fmt.Errorf("must be %s, not %s", strings.Join(words(p.types), " or "), describe(value))
	}
	if len(p.enum) > 0 && !slices.ContainsFunc(p.enum, func(v json.RawMessage) bool { return equalJSON(v, value) }) {
		return fmt.Errorf("must be one of %s", p.enumText)
	}
	n, isNumber := number(value)
	if p.low != nil && isNumber && n < *p.low {
		return fmt.Errorf("must be at least %v", *p.low)
	}
	if p.high != nil && isNumber && n > *p.high {
		return fmt.Errorf("must be at most %.0f", *p.high)
	}
	return nil
}

func number(raw json.RawMessage) (float64, bool) {
	var n float64
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || json.Unmarshal(raw, &n) != nil {
		return 0, false
	}
	return n, true
}

func isType(value json.RawMessage, typ string) bool {
	if len(value) == 0 {
		return false
	}
	switch typ {
	case "string":
		return value[0] == '"'
	case "boolean":
		return value[0] == 't' || value[0] == 'f'
	case "null":
		return value[0] == 'n'
	case "array":
		return value[0] == '['
	case "object":
		return value[0] == '{'
	case "number":
		_, ok := number(value)
		return ok
	case "integer":
		// 5.0 is an integer in JSON Schema. Beyond 2^53 a float says nothing
		// about it any more.
		n, ok := number(value)
		return ok && n == math.Trunc(n) && math.Abs(n) <= 1<<53
	}
	return true // a type we do not know is not ours to check
}

func words(types []string) []string {
	var out []string
	for _, t := range types {
		switch t {
		case "string":
			t = "a string"
		case "integer":
			t = "an integer"
		case "number":
			t = "a number"
		case "boolean":
			t = "True or False"
		case "array":
			t = "a list"
		case "object":
			t = "a dict"
		case "null":
			t = "None"
		default:
			t = plain.Quote(t)
		}
		out = append(out, t)
	}
	return out
}

func describe(value json.RawMessage) string {
	switch {
	case len(value) == 0:
		return "nothing"
	case value[0] == '"':
		return "a string"
	case value[0] == '[':
		return "a list"
	case value[0] == '{':
		return "a dict"
	}
	return plain.Line(literal(value), 40)
}

func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	switch x := x.(type) {
	case string, bool, float64, nil:
		return x == y
	}
	return bytes.Equal(a, b)
}

// plainInteger rewrites 5.0 and 1e3, which are integers too, for Go reads only
// the plain form into an int.
func plainInteger(value json.RawMessage) json.RawMessage {
	if n, ok := number(value); ok && n == math.Trunc(n) && math.Abs(n) <= 1<<53 {
		return json.RawMessage(strconv.FormatInt(int64(n), 10))
	}
	return value
}
