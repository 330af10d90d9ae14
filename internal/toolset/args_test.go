package toolset

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/belljar/belljar"
)

const argSchema = `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
	"path":{"type":"string"},
	"n":{"type":"integer","minimum":1,"maximum":1000,"default":20},
	"max":{"type":["integer","null"],"minimum":1,"default":null},
	"f":{"type":"number"},
	"b":{"type":"boolean","default":false},
	"l":{"type":"array"},"o":{"type":"object"},
	"how":{"type":"string","enum":["x","y"],"default":"x"}}}`

func TestArgs(t *testing.T) {
	spec := newArgSpec(belljar.Tool{Name: "f", InputSchema: json.RawMessage(argSchema)})
	for in, want := range map[string]string{
		`{"path":"a"}`:                                `{"b":false,"how":"x","n":20,"path":"a"}`,
		` {"path":"a","n":5.0,"max":1e2} `:            `{"b":false,"how":"x","max":100,"n":5,"path":"a"}`,
		`{"path":"a","n":null,"f":null,"max":null}`:   `{"b":false,"how":"x","n":20,"path":"a"}`,
		`{"path":"a","how":"y","l":[],"o":{},"f":-1}`: `{"b":false,"f":-1,"how":"y","l":[],"n":20,"o":{},"path":"a"}`,
		`{"path":"ü\u0000"}`:                          `{"b":false,"how":"x","n":20,"path":"ü\u0000"}`,
	} {
		got, err := spec.check(json.RawMessage(in))
		if string(got) != want || err != nil {
			t.Errorf("%s gives %s, %v, want %s", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		`{}`:                               "the parameter 'path' is missing",
		``:                                 "the parameter 'path' is missing",
		`null`:                             "the parameter 'path' is missing",
		`{"path":null}`:                    "'path' must be a string, not None",
		`{"path":7}`:                       "'path' must be a string, not 7",
		`{"path":"a","Path":"b"}`:          "there is no parameter 'Path', did you mean 'path'; the call is",
		`{"path":"a","maximum":2}`:         "there is no parameter 'maximum', did you mean 'max'; the call is",
		`{"path":"a","query":2}`:           "there is no parameter 'query'; the call is",
		`{"path":"a","x\n\u001b":"b"}`:     `there is no parameter 'x\n\x1b'`,
		`{"path":"a","n":"5"}`:             "'n' must be an integer, not a string",
		`{"path":"a","n":5.5}`:             "'n' must be an integer, not 5.5",
		`{"path":"a","n":true}`:            "'n' must be an integer, not True",
		`{"path":"a","n":1e300}`:           "'n' must be an integer",
		`{"path":"a","n":0}`:               "'n' must be at least 1",
		`{"path":"a","n":1001}`:            "'n' must be at most 1000",
		`{"path":"a","max":"all"}`:         "'max' must be an integer or None, not a string",
		`{"path":"a","max":0}`:             "'max' must be at least 1",
		`{"path":"a","f":"1"}`:             "'f' must be a number",
		`{"path":"a","b":0}`:               "'b' must be True or False, not 0",
		`{"path":"a","l":{}}`:              "'l' must be a list, not a dict",
		`{"path":"a","o":[]}`:              "'o' must be a dict, not a list",
		`{"path":"a","how":"z"}`:           `'how' must be one of ["x","y"]`,
		`["a"]`:                            "no JSON object",
		`"a"`:                              "no JSON object",
		`{"path":"a"`:                      "no JSON object",
		`{"path":"a"}{"path":"b"}`:         "no JSON object",
		strings.Repeat(`{"path":`, 20_000): "no JSON object",
	} {
		got, err := spec.check(json.RawMessage(in))
		var te *belljar.ToolError
		if !errors.As(err, &te) || te.Code != "bad_arguments" || te.Tool != "f" || !strings.Contains(te.Reason, want) {
			t.Errorf("%.60s gives %s, %v, want %q", in, got, err, want)
			continue
		}
		if !strings.Contains(te.Reason, "; the call is f(path: str, n: int = 20,") {
			t.Errorf("%.60s: no signature in %q", in, te.Reason)
		}
	}

	open := newArgSpec(belljar.Tool{Name: "g", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{}}}`)})
	if got, err := open.check(json.RawMessage(`{"a":[1],"other":2}`)); string(got) != `{"a":[1],"other":2}` || err != nil {
		t.Errorf("an open schema: %s, %v", got, err)
	}
	none := newArgSpec(belljar.Tool{Name: "h"})
	if got, err := none.check(json.RawMessage(`{"a":1}`)); string(got) != `{"a":1}` || err != nil {
		t.Errorf("no schema: %s, %v", got, err)
	}
}

func FuzzArgs(f *testing.F) {
	f.Add(argSchema, `{"path":"a","n":5.0}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		spec := newArgSpec(belljar.Tool{Name: "f", InputSchema: json.RawMessage(schema)})
		got, err := spec.check(json.RawMessage(args))
		if err == nil && !spec.open && !json.Valid(got) {
			t.Errorf("checked arguments are no JSON: %q", got)
		}
	})
}
