package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belljar/belljar"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const emptyCode = "execute_code called with empty code."

func TestReadArguments(t *testing.T) {
	ms := func(n int64) belljar.LimitsRequest { return belljar.LimitsRequest{TimeoutMS: &n} }
	tests := []struct {
		name, args string
		want       belljar.Request
		wrong      string // part of the reason
	}{
		{name: "code", args: `{"code": "print(1)"}`, want: belljar.Request{Source: "print(1)"}},
		{name: "everything", args: `{"code":"x","lang":"python","timeout_s":1.5,"stdin":"in","files":[{"name":"a","content":"b"},{"name":"c","content":"ZA==","encoding":"base64"}]}`,
			want: belljar.Request{Source: "x", Lang: "python", Stdin: "in", Limits: ms(1500), Files: []belljar.File{{Name: "a", Content: "b"}, {Name: "c", Content: "ZA==", Encoding: "base64"}}}},
		{name: "null is absent", args: `{"code":"x","lang":null,"timeout_s":null,"files":null,"stdin":null}`, want: belljar.Request{Source: "x"}},
		{name: "less than a millisecond", args: `{"code":"x","timeout_s":1e-9}`, want: belljar.Request{Source: "x", Limits: ms(1)}},
		{name: "beyond any number", args: `{"code":"x","timeout_s":1e300}`, want: belljar.Request{Source: "x", Limits: ms(1 << 53)}},

		{name: "no arguments", args: ``, wrong: emptyCode},
		{name: "null arguments", args: `null`, wrong: emptyCode},
		{name: "empty object", args: `{}`, wrong: emptyCode},
		{name: "array of arguments", args: `[]`, wrong: "must be an object, not an array"},
		{name: "string of arguments", args: `"x"`, wrong: "must be an object, not a string"},
		{name: "code null", args: `{"code":null}`, wrong: emptyCode},
		{name: "code array", args: `{"code":["a"]}`, wrong: emptyCode},
		{name: "code number", args: `{"code":5}`, wrong: emptyCode},
		{name: "code empty", args: `{"code":""}`, wrong: emptyCode},
		{name: "code blank", args: `{"code":" \n\t"}`, wrong: emptyCode},
		{name: "the other tool's argument", args: `{"source":"print(1)"}`, wrong: emptyCode},
		{name: "lang number", args: `{"code":"x","lang":5}`, wrong: "lang must be a string, not a number"},
		{name: "timeout string", args: `{"code":"x","timeout_s":"5"}`, wrong: "timeout_s must be a number of seconds, not a string"},
		{name: "timeout zero", args: `{"code":"x","timeout_s":0}`, wrong: "timeout_s must be more than 0"},
		{name: "timeout negative", args: `{"code":"x","timeout_s":-1e300}`, wrong: "timeout_s must be more than 0"},
		{name: "timeout boolean", args: `{"code":"x","timeout_s":true}`, wrong: "not true or false"},
		{name: "stdin object", args: `{"code":"x","stdin":{}}`, wrong: "stdin must be a string, not an object"},
		{name: "files object", args: `{"code":"x","files":{"a":"b"}}`, wrong: "files must be an array"},
		{name: "file without content", args: `{"code":"x","files":[{"name":"a"}]}`, wrong: "files[0] needs a name and a content"},
		{name: "file with a number", args: `{"code":"x","files":[{"name":"a","content":5}]}`, wrong: "files[0] must be an object of strings"},
		{name: "unknown argument", args: `{"code":"x","timeout":5}`, wrong: `no argument "timeout"`},
		{name: "a session from the model", args: `{"code":"x","session":"s"}`, wrong: `no argument "session"`},
		{name: "a fence from the model", args: `{"code":"x","belljar/fence":[]}`, wrong: `no argument "belljar/fence"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got belljar.Request
			err := readArguments(&got, json.RawMessage(tt.args))
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Reason, tt.wrong) {
					t.Fatalf("got %v, want %q", err, tt.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadMeta(t *testing.T) {
	tests := []struct {
		name    string
		meta    mcp.Meta
		session string
		fence   []string
		wrong   bool
	}{
		{name: "none"},
		{name: "session", meta: mcp.Meta{metaSession: "s1"}, session: "s1"},
		{name: "fence", meta: mcp.Meta{metaFence: []any{"a", "b"}}, fence: []string{"a", "b"}},
		{name: "an empty fence lets nothing through", meta: mcp.Meta{metaFence: []any{}}, fence: []string{}},
		{name: "fence null", meta: mcp.Meta{metaFence: nil}, wrong: true},
		{name: "fence string", meta: mcp.Meta{metaFence: "a"}, wrong: true},
		{name: "fence of numbers", meta: mcp.Meta{metaFence: []any{"a", 1.0}}, wrong: true},
		{name: "fence object", meta: mcp.Meta{metaFence: map[string]any{"a": true}}, wrong: true},
		{name: "session number", meta: mcp.Meta{metaSession: 5.0}, wrong: true},
		{name: "session null", meta: mcp.Meta{metaSession: nil}, wrong: true},
		{name: "session too long", meta: mcp.Meta{metaSession: strings.Repeat("s", maxSession+1)}, wrong: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got belljar.Request
			err := readMeta(&got, tt.meta)
			if (err != nil) != tt.wrong {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			if got.Session != tt.session {
				t.Errorf("session %q", got.Session)
			}
			// nil and empty mean opposite things.
			if diff := cmp.Diff(tt.fence, got.Fence); diff != "" {
				t.Errorf("fence: %s", diff)
			}
		})
	}
}

func TestCallerName(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "claude-code", "mcp:claude-code"},
		{"none", "", "mcp"},
		{"forged line", "a\nb c\x1b", "mcp:a_b_c_"},
		{"long", strings.Repeat("x", 500), "mcp:" + strings.Repeat("x", maxCaller)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := callerName(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzReadArguments(f *testing.F) {
	f.Add(`{"code":"x","timeout_s":1}`)
	f.Add(`{"code":["a"],"files":[{"name":null}]}`)
	f.Add(`nul`)
	f.Fuzz(func(t *testing.T, args string) {
		var req belljar.Request
		if err := readArguments(&req, json.RawMessage(args)); err == nil && strings.TrimSpace(req.Source) == "" {
			t.Errorf("%q was taken without any code", args)
		}
	})
}
