package toolset

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

func TestSignature(t *testing.T) {
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf(`"parameter_%02d":{"type":"string"}`, i)
	}
	deep := strings.Repeat(`{"type":"array","items":`, 20) + `{}` + strings.Repeat(`}`, 20)
	for _, tc := range []struct{ name, input, output, want string }{
		{"types, defaults and order",
			`{"type":"object","required":["path"],"properties":{"n":{"type":"integer","default":20000},"path":{"type":"string"},"f":{"type":"number"},"b":{"type":"boolean","default":false},"o":{"type":"object","default":{}},"l":{"type":"array","items":{"type":"string"},"default":[]}}}`,
			`{"type":"string"}`,
			"f(path: str, n: int = 20000, f: float = None, b: bool = False, o: dict = {}, l: list[str] = []) -> str"},
		{"no parameters", `{"type":"object"}`, ``, "f()"},
		{"no type at the top", `{"properties":{"a":{}}}`, ``, "f(a=None)"},
		{"no schema", ``, ``, "f(…)"},
		{"null", `null`, ``, "f(…)"},
		{"a list", `[]`, ``, "f(…)"},
		{"not an object's schema", `{"type":"string"}`, ``, "f(…)"},
		{"broken", `{"type":`, ``, "f(…)"},
		{"properties are no object", `{"type":"object","properties":[1]}`, ``, "f(…)"},
		{"required is no list", `{"type":"object","required":7}`, ``, "f(…)"},
		{"larger than 64 KiB", `{"type":"object","description":"` + strings.Repeat("x", 70_000) + `"}`, ``, "f(…)"},
		{"enum", `{"type":"object","required":["how"],"properties":{"how":{"type":"string","enum":["asc","desc"]},"x":{"const":1}}}`, ``,
			`f(how: Literal["asc", "desc"], x: Literal[1] = None)`},
		{"long enum", `{"type":"object","properties":{"how":{"type":"string","enum":["a","b","c","d","e"]}}}`, ``, "f(how: str = None)"},
		{"unions", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},"c":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}}}`, ``,
			"f(a: str = None, b: int = None, c: str | list[str] = None)"},
		{"references", `{"type":"object","required":["m"],"$defs":{"Mode":{"enum":["r","w"]},"L":{"$ref":"#/$defs/Mode"}},"properties":{"m":{"$ref":"#/$defs/L"}}}`, ``,
			`f(m: Literal["r", "w"])`},
		{"reference to itself", `{"type":"object","$defs":{"A":{"$ref":"#/$defs/A"}},"properties":{"a":{"$ref":"#/$defs/A"}}}`, ``, "f(a=None)"},
		{"reference elsewhere", `{"type":"object","properties":{"a":{"$ref":"https://x/y"}}}`, ``, "f(a=None)"},
		{"names that are none", `{"type":"object","required":["user-id"],"properties":{"user-id":{"type":"string"},"class":{},"ok":{"type":"string"},"a\nb":{},"ü":{}}}`, ``,
			"f(ok: str = None, …)"},
		{"literals that could do harm", `{"type":"object","properties":{"a":{"default":"x\n\u202e\"y"},"b":{"default":"` + strings.Repeat("z", 100) + `"},"c":{"default":[1]},"d":{"default":1e999999999999999999999999}}}`, ``,
			`f(a="x\n\u202e\"y", b=…, c=…, d=…)`},
		{"types that are none", `{"type":"object","properties":{"a":{"type":"strïng"},"b":{"type":7},"c":true,"d":{"type":["string",{}]}}}`, ``, "f(a=None, b=None, c=None, d=None)"},
		{"deep", `{"type":"object","properties":{"a":` + deep + `}}`, ``, "f(a: list[list[list[list[list]]]] = None)"},
		{"cut at 200 characters", `{"type":"object","required":["parameter_07"],"properties":{` + strings.Join(many, ",") + `}}`, `{"type":"array","items":{"type":"object"}}`,
			"f(parameter_07: str, parameter_00: str = None, parameter_01: str = None, parameter_02: str = None, parameter_03: str = None, parameter_04: str = None, parameter_05: str = None, …) -> list[dict]"},
		{"inside an object", `{"type":"object","required":["entities"],"properties":{"entities":{"type":"array","items":{"type":"object","required":["name","entityType","observations"],"properties":{"name":{"type":"string"},"entityType":{"type":"string"},"observations":{"type":"array","items":{"type":"string"}}}}}}}`, `{"type":"object","required":["n"],"properties":{"n":{"type":["integer","null"]},"user-id":{"type":"string"},"from":{},"why":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`,
			`f(entities: list[{name: str, entityType: str, observations: list[str]}]) -> {n: int | None, "user-id"?: str, from?, why?: str | None}`},
		{"objects within objects, two levels", `{"type":"object","properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"object","required":["c"],"properties":{"c":{"type":"object","properties":{"d":{}}}}}}}}}`, ``,
			"f(a: {b: {c: dict}} = None)"},
		{"an object without keys", `{"type":"object","properties":{"a":{"type":"object","properties":{}},"b":{"type":"object","properties":[]}}}`, ``, "f(a: dict = None, b: dict = None)"},
		{"an object with more than 16 keys", `{"type":"object"}`, `{"type":"object","properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{},"i":{},"j":{},"k":{},"l":{},"m":{},"n":{},"o":{},"p":{},"q":{}}}`,
			"f() -> {a?, b?, c?, d?, e?, f?, g?, h?, i?, j?, k?, l?, m?, n?, o?, p?, …}"},
		{"keys that could do harm", `{"type":"object"}`, `{"type":"object","properties":{"x\n\u202e\"}":{},"` + strings.Repeat("z", 100) + `":{}}}`, `f() -> {"x\n\u202e\"}"?, …}`},
		{"alternatives that are alike inside", `{"type":"object","properties":{"a":{"anyOf":[{"type":"array","items":{"type":["string","integer"]}},{"type":"array","items":{"type":["number","integer"]}},{"enum":["x | y"]},{"enum":["z | y"]}]}}}`, ``,
			`f(a: list[str | int] | list[float | int] | Literal["x | y"] | Literal["z | y"] = None)`},
		{"the answer is shortened before a parameter", `{"type":"object","required":["entities"],"properties":{"entities":{"type":"array","items":{"type":"object","required":["name","entityType","observations"],"properties":{"name":{"type":"string"},"entityType":{"type":"string"},"observations":{"type":"array","items":{"type":"string"}}}}}}}`, `{"type":"object","properties":{` + strings.Join(many, ",") + `}}`,
			"f(entities: list[{name: str, entityType: str, observations: list[str]}]) -> dict"},
		{"the longest parameter is shortened first", `{"type":"object","required":["short","long"],"properties":{"short":{"type":"object","properties":{"a":{}}},"long":{"type":"object","required":["x","y"],"properties":{"x":{"type":"object","properties":{` + strings.Join(many[:10], ",") + `}},"y":{"type":"string"}}}}}`, ``,
			"f(short: {a?}, long: {x: dict, y: str})"},
		{"a key written twice", `{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"integer"}}}`, ``, "f(a: int = None)"},
		{"unreadable output", `{"type":"object"}`, `[]`, "f()"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Signature(belljar.Tool{Name: "f", InputSchema: json.RawMessage(tc.input), OutputSchema: json.RawMessage(tc.output)})
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	for name, want := range map[string]string{"": "_()", "a\nb\x1b": "a_b_()", "é": "_()"} {
		if got := Signature(belljar.Tool{Name: name, InputSchema: json.RawMessage(`{}`)}); got != want {
			t.Errorf("name %q gives %q, want %q", name, got, want)
		}
	}
}

// TestSignatureOfBomb has a small schema that unfolds without end.
func TestSignatureOfBomb(t *testing.T) {
	pad := strings.Repeat("x", 8000)
	var defs []string
	for i := range 6 {
		alt := fmt.Sprintf(`{"$ref":"#/$defs/D%d"}`, i+1)
		defs = append(defs, fmt.Sprintf(`"D%d":{"description":"%s","anyOf":[%s,%s,%s,%s]}`, i, pad, alt, alt, alt, alt))
	}
	var props []string
	for i := range maxParams {
		props = append(props, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/D0"}`, i))
	}
	schema := `{"type":"object","$defs":{` + strings.Join(defs, ",") + `},"properties":{` + strings.Join(props, ",") + `}}`
	s := parseSchema(json.RawMessage(schema))
	list, ok := s.params()
	if !ok {
		t.Fatal("the schema was not read")
	}
	for _, p := range list {
		pythonType(p.schema, 0, maxObjects)
	}
	if s.left > 0 {
		t.Errorf("%d bytes were left to parse: this is no bomb", s.left)
	}
	if got := Signature(belljar.Tool{Name: "f", InputSchema: json.RawMessage(schema)}); !strings.HasPrefix(got, "f(p0=None, p1=None") {
		t.Errorf("got %s", got)
	}
}

func TestUnwrapSchema(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","properties":{"content":{"type":"string"}}}`:                                                             `{"type":"string"}`,
		`{"type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/$defs/A"}}},"$defs":{"A":{"type":"integer"}}}`: `{"$defs":{"A":{"type":"integer"}},"items":{"$ref":"#/$defs/A"},"type":"array"}`,
		`{"type":"object","properties":{"a":{}}}`:                                                                                  `{"type":"object","properties":{"a":{}}}`,
		`{"type":"object","properties":{"content":true}}`:                                                                          ``,
		`{"type":"object","properties":{"content":{"type":"array","items":{"anyOf":[{"type":"object","required":["type"],"properties":{"type":{"enum":["image","audio"]}}},{"$ref":"#/$defs/R"}]}}},"$defs":{"R":{"type":"object","required":["type"],"properties":{"type":{"const":"resource"}}}}}`: ``,
		`{"type":"object","properties":{"content":{"type":"array","items":{"type":"object","required":["type"],"properties":{"type":{"const":"text"}}}}}}`:                                                                                                                                           ``,
		`{"type":"object","properties":{"result":{"type":"array","items":{"type":"object","required":["type"],"properties":{"type":{"enum":["text","row"]}}}}}}`:                                                                                                                                     `{"items":{"type":"object","required":["type"],"properties":{"type":{"enum":["text","row"]}}},"type":"array"}`,
		`{"type":"object","properties":{"result":{"type":"array","items":{"type":"object","properties":{"type":{"const":"text"}}}}}}`:                                                                                                                                                                `{"items":{"type":"object","properties":{"type":{"const":"text"}}},"type":"array"}`,
		`[]`: ``,
		``:   ``,
	} {
		if got := string(unwrapSchema(json.RawMessage(in))); got != want {
			t.Errorf("unwrapSchema(%s) = %s, want %s", in, got, want)
		}
	}
}

func FuzzSignature(f *testing.F) {
	f.Add("read_file", `{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"enum":[1,"x"],"default":1}}}`, `{"type":"string"}`)
	f.Add("x", `{"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}},"properties":{"a":{"$ref":"#/$defs/A"},"a-b":{}}}`, `{"type":"array","items":{"type":["array","null"]}}`)
	f.Add("", `{"properties":{"a":{"default":"\u202e"}}}`, `{}`)
	f.Fuzz(func(t *testing.T, name, in, out string) {
		tool := belljar.Tool{Name: name, InputSchema: json.RawMessage(in), OutputSchema: json.RawMessage(out)}
		s := Signature(tool)
		if n := utf8.RuneCountInString(s); n > maxSignature || !utf8.ValidString(s) {
			t.Fatalf("%d characters: %q", n, s)
		}
		for _, r := range s {
			if r != '…' && (r < ' ' || r > '~') {
				t.Fatalf("%q holds %q", s, r)
			}
		}
		if !strings.HasPrefix(s, showName(name)+"(") || !strings.Contains(s, ")") {
			t.Fatalf("not a signature: %q", s)
		}
		newArgSpec(tool)
		unwrapSchema(tool.OutputSchema)
	})
}
