package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/toolsettest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	toolsettest.Main()
	os.Exit(m.Run())
}

func start(t *testing.T, mode string, tune ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{Name: "srv", Command: os.Args[0], Env: []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}}
	for k, v := range toolsettest.Env(mode) {
		cfg.Env = append(cfg.Env, k+"="+v)
	}
	for _, f := range tune {
		f(&cfg)
	}
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

func call(t *testing.T, c *Client, name, args string) (belljar.Value, error) {
	t.Helper()
	v, err := c.Call(context.Background(), name, json.RawMessage(args))
	if err != nil {
		var te *belljar.ToolError
		if !errors.As(err, &te) {
			t.Fatalf("%s: the error is a %T: %v", name, err, err)
		}
	}
	return v, err
}

func wantErr(t *testing.T, err error, code, part string) {
	t.Helper()
	var te *belljar.ToolError
	if !errors.As(err, &te) || te.Code != code || !strings.Contains(te.Reason, part) {
		t.Errorf("error is %#v, want code %s and %q", err, code, part)
	}
}

func TestAnswers(t *testing.T) {
	c := start(t, "good")
	text := func(s string) belljar.Value { return belljar.Value{Kind: belljar.ValueText, Data: []byte(s)} }
	doc := func(s string) belljar.Value { return belljar.Value{Kind: belljar.ValueJSON, Data: []byte(s)} }
	raw := func(s, m string) belljar.Value {
		return belljar.Value{Kind: belljar.ValueBytes, Data: []byte(s), MediaType: m}
	}
	for _, tc := range []struct {
		tool, args string
		want       belljar.Value
	}{
		{"text", "{}", text("hello")},
		{"texts", "{}", text("one\ntwo\n")},
		{"empty", "{}", text("")},
		{"structured", "{}", doc(`{"b":1,"a":[true,null],"n":12345678901234567890}`)},
		{"result-key", "{}", doc(`[1,2]`)},
		{"content.key", "{}", text("just text")},
		{"list", "{}", doc(`[1,"x"]`)},
		{"image", "{}", raw("\x89PNG\r\n", "image/png")},
		{"audio", "{}", raw("\x89PNG\r\n", "audio/wav")},
		{"blob", "{}", raw("\x00\x01", "application/x-b")},
		{"embedded", "{}", text("inside")},
		{"link", "{}", doc(`{"uri":"file:///l","name":"l","media_type":"text/plain","size":7}`)},
		{"mixed", "{}", doc(`["a <plot>",{"type":"image","media_type":"image/png","data":"iVBORw0K"},` +
			`{"type":"resource_link","uri":"file:///l","name":"l","media_type":"text/plain","size":7},` +
			`{"type":"resource","uri":"file:///b","media_type":"application/x-b","data":"AAE="}]`)},
		{"echo", `{"q":"é <&> 🙂","big":12345678901234567890}`, text(`{"q":"é <&> 🙂","big":12345678901234567890}`)},
	} {
		t.Run(tc.tool, func(t *testing.T) {
			got, err := call(t, c, tc.tool, tc.args)
			if err != nil {
				t.Fatal(err)
			}
			if tc.tool == "echo" { // escaping on the way is the SDK's business
				var a, b any
				if json.Unmarshal(got.Data, &a) != nil || json.Unmarshal(tc.want.Data, &b) != nil || !strings.Contains(string(got.Data), "12345678901234567890") {
					t.Errorf("echo gave %s", got.Data)
				} else if diff := cmp.Diff(b, a); diff != "" {
					t.Error(diff)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for tool, want := range map[string]string{
		"fails": "no such [31mcity", "fails_silently": "did not say which", "refuses": "not today", "absent": "absent",
	} {
		_, err := call(t, c, tool, "{}")
		wantErr(t, err, "failed", want)
	}
}

func TestLies(t *testing.T) {
	c := start(t, "lies", func(c *Config) { c.ProbeTimeout = time.Millisecond })
	for kind, want := range map[string]string{
		"string": "no tool result", "content": "no tool result", "block": "malformed", "base64": "not base64", "input": "asks for input",
	} {
		_, err := call(t, c, "go", `{"kind":"`+kind+`"}`)
		wantErr(t, err, "failed", want)
	}
	for kind, want := range map[string]belljar.Value{
		"mediatype":   {Kind: belljar.ValueBytes, Data: []byte{0, 1}, MediaType: "application/octet-stream"},
		"later":       {Kind: belljar.ValueJSON, Data: []byte(`[{"type":"hologram","x":1}]`)},
		"nothing":     {Kind: belljar.ValueText, Data: []byte{}},
		"null":        {Kind: belljar.ValueText, Data: []byte{}},
		"same blocks": {Kind: belljar.ValueBytes, Data: []byte{0, 1}, MediaType: "image/png"},
	} {
		got, err := call(t, c, "go", `{"kind":"`+kind+`"}`)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(kind, err, diff)
		}
	}
}

func TestList(t *testing.T) {
	c := start(t, "good")
	tools, problems, err := c.List(context.Background())
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, tool := range tools {
		if tool.Name == "echo" && !strings.HasPrefix(string(tool.InputSchema), `{"type":"object","required":["q"],"properties":{"zeta"`) {
			t.Errorf("the schema's order is lost: %s", tool.InputSchema)
		}
	}
	if c.Stale() {
		t.Error("stale at once")
	}
	if _, err := call(t, c, "more", "{}"); err != nil {
		t.Fatal(err)
	}
	for range 500 { // the word of it may come after the answer
		if c.Stale() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !c.Stale() {
		t.Fatal("a change of the list went unnoticed")
	}
	again, _, err := c.List(context.Background())
	if err != nil || len(again) != len(tools)+1 || c.Stale() {
		t.Errorf("second list: %d tools after %d, stale %v, %v", len(again), len(tools), c.Stale(), err)
	}
}

func TestOddLists(t *testing.T) {
	quick := func(c *Config) { c.ProbeTimeout = time.Millisecond }
	tools, problems, err := start(t, "odd", quick).List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
		if tool.Name == "huge" && tool.InputSchema != nil {
			t.Error("a huge schema was kept")
		}
		if tool.Name == "talks" && (len(tool.Description) > maxDescription || strings.ContainsAny(tool.Description, "\x1b\u202e\r")) {
			t.Errorf("description is kept as it came: %.60q", tool.Description)
		}
	}
	if len(names) != 13 || len(problems) != 4 {
		t.Errorf("%d tools %q, problems %v", len(names), names, problems)
	}

	tools, problems, err = start(t, "pages", quick).List(context.Background())
	if len(tools) != maxPages || len(problems) != 1 || err != nil {
		t.Errorf("an endless list: %d tools, %v, %v", len(tools), problems, err)
	}
}

func TestCallsDoNotCross(t *testing.T) {
	c := start(t, "good")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				q := fmt.Sprintf("%d-%d-%s", g, i, strings.Repeat("x", 20_000))
				v, err := c.Call(context.Background(), "echo", json.RawMessage(`{"q":"`+q+`"}`))
				if err != nil || string(v.Data) != `{"q":"`+q+`"}` {
					t.Errorf("call %d-%d got %.40q, %v", g, i, v.Data, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestEnvironment(t *testing.T) {
	t.Setenv("BELLJAR_TEST_SECRET", "do not pass on")
	dir := t.TempDir()
	c := start(t, "good", func(c *Config) { c.Dir = dir })
	v, err := call(t, c, "env", "{}")
	if err != nil {
		t.Fatal(err)
	}
	if want := "GORACE=atexit_sleep_ms=0\nPATH=" + os.Getenv("PATH") + "\ncwd=" + dir; string(v.Data) != want {
		t.Errorf("the server sees %q, want %q", v.Data, want)
	}
}

func TestMisbehaves(t *testing.T) {
	const limit = 1 << 20
	for _, tc := range []struct {
		mode, script, operator string
	}{
		{"silent", "did not finish the MCP handshake within", ""},
		{"exits", "ended by itself (exit status 1)", "its last words: cannot find [1mthe config, key [redacted]"},
		{"garbage", "lines to stdout that are no MCP messages", "the first 'warning: this is not what you think'"},
		{"endless", "more than 1048576 bytes", ""},
		{"notifies", "nobody asked for", ""},
		{"asks", "requests of its own", ""},
		{"deaf", "did not answer within", ""},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			c := start(t, tc.mode, func(c *Config) {
				c.MaxMessage, c.Grace = limit, 50*time.Millisecond
				c.StartTimeout, c.ProbeTimeout, c.CallTimeout = 20*time.Second, 100*time.Millisecond, 30*time.Second
				c.Env = append(c.Env, "TOKEN=hunter22")
				c.Secrets = []string{"hunter22"}
				switch tc.mode {
				case "silent":
					c.StartTimeout = 300 * time.Millisecond
				case "deaf":
					c.CallTimeout = 3 * time.Second
				}
			})
			if tc.mode == "deaf" {
				if _, _, err := c.List(context.Background()); err != nil {
					t.Fatal(err)
				}
				_, err := call(t, c, "eat", `{"q":"`+strings.Repeat("x", 900_000)+`"}`)
				wantErr(t, err, "timeout", tc.script)
				return
			}
			_, err := call(t, c, "go", "{}")
			wantErr(t, err, "failed", tc.script)
			_, why := c.State()
			if why == nil || !strings.Contains(why.Error(), tc.operator) {
				t.Errorf("the operator is told %v, want %q", why, tc.operator)
			}
			if strings.Contains(fmt.Sprint(err, why), "hunter22") || strings.Contains(fmt.Sprint(err, why), "\x1b") {
				t.Errorf("a secret or a control character got through: %q %q", err, why)
			}
		})
	}
}

func TestTolerated(t *testing.T) {
	for _, mode := range []string{"greets", "oldfashioned"} {
		c := start(t, mode, func(c *Config) { c.ProbeTimeout = 100 * time.Millisecond })
		if v, err := call(t, c, "plain", "{}"); err != nil || string(v.Data) != "plain" {
			t.Errorf("%s: %q, %v", mode, v.Data, err)
		}
	}
}

func TestFloodingAnswer(t *testing.T) {
	c := start(t, "good", func(c *Config) { c.MaxMessage = 1 << 20 })
	if v, err := call(t, c, "large", `{"bytes":1000000}`); err != nil || len(v.Data) != 1_000_000 {
		t.Fatalf("%d bytes, %v", len(v.Data), err)
	}
	_, err := call(t, c, "large", `{"bytes":1100000}`)
	wantErr(t, err, "failed", "more than 1048576 bytes and was stopped")
	if v, err := call(t, c, "text", "{}"); err != nil || string(v.Data) != "hello" {
		t.Errorf("not started again: %v", err)
	}
}
