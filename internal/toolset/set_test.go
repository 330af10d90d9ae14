package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/toolsettest"
	"github.com/belljar/belljar/internal/toolset/upstream"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	toolsettest.Main()
	os.Exit(m.Run())
}

// srv is a server of the test binary.
func srv(mode string) Server {
	env := toolsettest.Env(mode)
	env["GORACE"] = "atexit_sleep_ms=0"
	return Server{Command: os.Args[0], Env: env}
}

func quick(c *upstream.Config) {
	c.ProbeTimeout, c.Grace = 100*time.Millisecond, 50*time.Millisecond
}

func names(tools []belljar.Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func find(t *testing.T, tools []belljar.Tool, name string) belljar.Tool {
	t.Helper()
	for _, tool := range tools {
		if tool.Name == name {
			return tool
		}
	}
	t.Fatalf("there is no %s among %v", name, names(tools))
	return belljar.Tool{}
}

func TestUpstreamTools(t *testing.T) {
	s := openSet(t, Config{Workspace: t.TempDir(), Servers: map[string]Server{"good-1": srv("good"), "clash": srv("clash")}, tune: quick})
	ctx := context.Background()
	if checks := s.Checks(ctx); len(checks) != 1 {
		t.Errorf("before the first use: %v", checks)
	}
	tools, errs := s.Tools(ctx)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := names(tools)
	if !slices.IsSorted(got) {
		t.Errorf("not sorted: %v", got)
	}
	for _, want := range []string{"read_file", "clash_read_file", "own", "clash_text", "good_1_text", "import_tool", "content_key", "result_key"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing: %v", want, got)
		}
	}
	if slices.Contains(got, "text") {
		t.Error("a disputed name was given to one of the two")
	}
	if got := Signature(find(t, tools, "echo")); got != "echo(q: str, zeta: int = 3, alpha: bool = None)" {
		t.Errorf("signature %s", got)
	}
	if diff := cmp.Diff([]string{"result_key", "result-key", "good_1_result_key", "good-1_result-key", "good-1.result-key", "good-1.result_key"}, find(t, tools, "result_key").Forms); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"clash_read_file", "read_file", "clash.read_file"}, find(t, tools, "clash_read_file").Forms); diff != "" {
		t.Error(diff)
	}
	for tool, want := range map[string]string{"clash_text": "clash text", "good_1_text": "hello", "own": "clash own", "clash_read_file": "clash read_file", "import_tool": "a keyword"} {
		v, err := s.Call(ctx, tool, nil)
		if err != nil || string(v.Data) != want {
			t.Errorf("%s: %q, %v", tool, v.Data, err)
		}
	}
	// As their servers call them, where that is no other tool.
	for tool, want := range map[string]string{"result-key": "result_key", "result.key": "result_key", "content.key": "content_key", "clash.text": "clash_text", "good-1.text": "good_1_text", "clash.read_file": "clash_read_file"} {
		found, ok := s.Find(ctx, tool)
		if !ok || found.Name != want {
			t.Errorf("%s is %q, %t", tool, found.Name, ok)
		}
		if _, err := s.Call(ctx, tool, nil); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
	}
	for _, tool := range []string{"text", "te-xt", "clash-text", "good-1_texts", "clash_own", "import", "read-file", "read.file", "builtin.read_file", "", "-", strings.Repeat("a-", 200)} {
		if found, ok := s.Find(ctx, tool); ok {
			t.Errorf("%q is %s", tool, found.Name)
		}
		_, err := s.Call(ctx, tool, nil)
		wantToolErr(t, err, tool, "unknown_tool", "not available")
	}
	_, err := s.Call(ctx, "echo", json.RawMessage(`[1]`))
	wantToolErr(t, err, "echo", "bad_arguments", "the call is echo(q: str")
	_, err = s.Call(ctx, "fails", nil)
	wantToolErr(t, err, "fails", "failed", "no such")
	for _, c := range s.Checks(ctx) {
		if c.State != belljar.CheckOK {
			t.Errorf("%+v", c)
		}
	}
}

func TestLaterTools(t *testing.T) {
	s := openSet(t, Config{Servers: map[string]Server{"good": srv("good")}, tune: quick})
	ctx := context.Background()
	if _, ok := s.Find(ctx, "later"); ok {
		t.Fatal("it is there too early")
	}
	if _, err := s.Call(ctx, "more", nil); err != nil {
		t.Fatal(err)
	}
	for range 500 { // the server's word of it may come after its answer
		if _, ok := s.Find(ctx, "later"); ok {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	v, err := s.Call(ctx, "later", nil)
	if err != nil || string(v.Data) != "here" {
		t.Errorf("%q, %v", v.Data, err)
	}
}

// TestLateServerTakesNoName has a server that comes up after names were given.
func TestLateServerTakesNoName(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	late := srv("clash")
	late.Command = "/bin/sh"
	late.Args = []string{"-c", `test -e "$1" && exec "$2"`, "sh", gate, os.Args[0]}
	s := openSet(t, Config{Servers: map[string]Server{"good": srv("good"), "a-late": late}, tune: quick})
	ctx := context.Background()
	tools, errs := s.Tools(ctx)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "'a-late' ended by itself") {
		t.Fatal(errs)
	}
	if got := find(t, tools, "text"); got.Source != "good" {
		t.Fatalf("text is of %s", got.Source)
	}
	checks := s.Checks(ctx)
	if len(checks) != 2 || checks[0].State != belljar.CheckFail || checks[1].State != belljar.CheckOK {
		t.Errorf("%+v", checks)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 100 { // it is tried again after a pause
		if tools, errs = s.Tools(ctx); len(errs) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if got := find(t, tools, "text"); got.Source != "good" || len(errs) > 0 {
		t.Errorf("text is now of %s; %v", got.Source, errs)
	}
	if got := find(t, tools, "a_late_text"); got.Source != "a-late" {
		t.Errorf("a_late_text is of %s", got.Source)
	}
}

func TestOddTools(t *testing.T) {
	s := openSet(t, Config{Servers: map[string]Server{"odd": srv("odd")}, tune: quick})
	tools, errs := s.Tools(context.Background())
	want := []string{"_2fa", "__class___tool", "current_time", "fine", "huge", "lambda_tool", "odd_same_name", "talks"}
	if diff := cmp.Diff(want, names(tools)); diff != "" {
		t.Error(diff)
	}
	for _, e := range errs {
		if strings.ContainsAny(e.Error(), "\x1b\u202e\n") || len(e.Error()) > 500 || !strings.Contains(e.Error(), "'odd'") {
			t.Errorf("error %q", e)
		}
	}
	for _, part := range []string{"'a/b'", `'rm\x1b[31m'`, "'naïve'", "longer than 128", "'fine' twice", "'same-name'", "malformed", "larger than 65536"} {
		if !strings.Contains(errors.Join(errs...).Error(), part) {
			t.Errorf("no error has %q: %v", part, errs)
		}
	}
	if find(t, tools, "fine").ReadOnly {
		t.Error("a server's claim to be read-only was believed")
	}
	for name, want := range map[string]string{"fine": "fine(z: str = None, a: str = None)", "huge": "huge(…)", "lambda_tool": "lambda_tool(…)", "talks": "talks(…)"} {
		if got := Signature(find(t, tools, name)); got != want {
			t.Errorf("signature %s, want %s", got, want)
		}
	}
	if v, err := s.Call(context.Background(), "lambda_tool", nil); err != nil || string(v.Data) != "odd" {
		t.Errorf("%q, %v", v.Data, err)
	}
}

func TestBrokenServersAreNamed(t *testing.T) {
	file := mcpFile(t, `{"mcpServers":{"web":{"url":"https://x"},"good":{"command":`+fmt.Sprintf("%q", os.Args[0])+`,"env":{"TOOLSETTEST_MODE":"good","GORACE":"atexit_sleep_ms=0"}}}}`)
	s := openSet(t, Config{MCPConfig: file, tune: quick, Servers: map[string]Server{
		"missing": {Command: "x", Env: map[string]string{"K": "${BELLJAR_NO_SUCH_VARIABLE}"}},
		"absent":  {Command: "no-such-command-here"},
	}})
	ctx := context.Background()
	for range 2 {
		tools, errs := s.Tools(ctx)
		find(t, tools, "text")
		if len(errs) != 3 {
			t.Errorf("%d errors: %v", len(errs), errs)
		}
		for _, part := range []string{file + `: MCP server 'web' is reached by "url"`, "BELLJAR_NO_SUCH_VARIABLE", "'absent' could not be started"} {
			if !strings.Contains(errors.Join(errs...).Error(), part) {
				t.Errorf("no error has %q: %v", part, errs)
			}
		}
	}
	state := map[string]belljar.CheckState{}
	for _, c := range s.Checks(ctx) {
		state[c.Name] = c.State
		if (c.Remedy == "") != (c.State == belljar.CheckOK) || c.Meaning == "" {
			t.Errorf("%+v", c)
		}
	}
	want := map[string]belljar.CheckState{"mcp server web": belljar.CheckFail, "mcp server missing": belljar.CheckFail, "mcp server absent": belljar.CheckFail, "mcp server good": belljar.CheckOK}
	if diff := cmp.Diff(want, state); diff != "" {
		t.Error(diff)
	}
}

func TestOpenRefuses(t *testing.T) {
	call := func(context.Context, json.RawMessage) (belljar.Value, error) { return belljar.Value{}, nil }
	fn := func(name, schema string) Func {
		return Func{Tool: belljar.Tool{Name: name, InputSchema: json.RawMessage(schema)}, Call: call}
	}
	many := map[string]Server{}
	for i := range 65 {
		many[fmt.Sprint("s", i)] = Server{Command: "x"}
	}
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"no workspace":       {Config{Workspace: "/nope"}, "The workspace '/nope' does not exist."},
		"no folder":          {Config{Workspace: "/dev/null"}, "The workspace '/dev/null' is not a folder."},
		"the whole machine":  {Config{Workspace: "/"}, "The workspace '/' is the root of the file system, which cannot be a workspace."},
		"function name":      {Config{Funcs: []Func{fn("a-b", "")}}, "no identifier"},
		"function keyword":   {Config{Funcs: []Func{fn("class", "")}}, "no identifier"},
		"function clash":     {Config{Funcs: []Func{fn("current_time", "")}}, "another tool"},
		"function twice":     {Config{Funcs: []Func{fn("f", ""), fn("f", "")}}, "another tool"},
		"function schema":    {Config{Funcs: []Func{fn("f", "[]")}}, "schema"},
		"nothing to call":    {Config{Funcs: []Func{{Tool: belljar.Tool{Name: "f"}}}}, "nothing to call"},
		"server twice":       {Config{MCPConfig: mcpFile(t, `{"mcpServers":{"a":{"command":"x"}}}`), Servers: map[string]Server{"a": {Command: "y"}}}, "twice"},
		"broken and again":   {Config{MCPConfig: mcpFile(t, `{"mcpServers":{"a":{"url":"x"}}}`), Servers: map[string]Server{"a": {Command: "y"}}}, "twice"},
		"servers look alike": {Config{Servers: map[string]Server{"a-b": {Command: "x"}, "a_b": {Command: "x"}}}, "look the same"},
		"server without":     {Config{Servers: map[string]Server{"": {Command: "x"}}}, "cannot be used"},
		"server controls":    {Config{Servers: map[string]Server{"a\x1b": {Command: "x"}}}, "cannot be used"},
		"too many servers":   {Config{Servers: many}, "more than 64"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(tc.cfg)
			if err == nil {
				s.Close()
			}
			wantRefusal(t, err, tc.want)
		})
	}
}

func TestFuncs(t *testing.T) {
	reply := belljar.Value{Kind: belljar.ValueText, Data: []byte("ok")}
	fn := func(name string, call func(context.Context, json.RawMessage) (belljar.Value, error)) Func {
		return Func{Tool: belljar.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer","default":4}}}`)}, Call: call}
	}
	s := openSet(t, Config{
		Servers: map[string]Server{"clash": srv("clash")}, tune: quick,
		Funcs: []Func{
			fn("own", func(_ context.Context, args json.RawMessage) (belljar.Value, error) {
				return belljar.Value{Kind: belljar.ValueJSON, Data: args}, nil
			}),
			fn("errs", func(context.Context, json.RawMessage) (belljar.Value, error) {
				return reply, errors.New("out of cheese")
			}),
			fn("denies", func(context.Context, json.RawMessage) (belljar.Value, error) {
				return reply, &belljar.ToolError{Code: "quota", Reason: "no more"}
			}),
			fn("panics", func(context.Context, json.RawMessage) (belljar.Value, error) { panic("oh") }),
			fn("nojson", func(context.Context, json.RawMessage) (belljar.Value, error) {
				return belljar.Value{Kind: belljar.ValueJSON, Data: []byte("{")}, nil
			}),
			fn("notext", func(context.Context, json.RawMessage) (belljar.Value, error) {
				return belljar.Value{Data: []byte("\xff")}, nil
			}),
			fn("waits", func(ctx context.Context, _ json.RawMessage) (belljar.Value, error) {
				<-ctx.Done()
				return reply, ctx.Err()
			}),
		}})
	ctx := context.Background()
	tools, errs := s.Tools(ctx)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if own := find(t, tools, "own"); own.Source != "go" || own.Forms[0] != "own" {
		t.Errorf("%+v", own)
	}
	find(t, tools, "clash_own")
	v, err := s.Call(ctx, "own", nil)
	if err != nil || string(v.Data) != `{"n":4}` {
		t.Errorf("%s, %v", v.Data, err)
	}
	_, err = s.Call(ctx, "own", json.RawMessage(`{"m":1}`))
	wantToolErr(t, err, "own", "bad_arguments", "no parameter 'm'; the call is own(n: int = 4)")
	for tool, want := range map[string][2]string{
		"errs": {"failed", "out of cheese"}, "denies": {"quota", "no more"}, "panics": {"failed", "panicked: oh"},
		"nojson": {"failed", "no JSON"}, "notext": {"failed", "no UTF-8"},
	} {
		_, err := s.Call(ctx, tool, nil)
		wantToolErr(t, err, tool, want[0], want[1])
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = s.Call(short, "waits", nil)
	wantToolErr(t, err, "waits", "timeout", "deadline")
}

// TestHammer uses one Set from many goroutines, and closes it under them.
func TestHammer(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := openSet(t, Config{Workspace: dir, Servers: map[string]Server{"good": srv("good"), "clash": srv("clash"), "gone": {Command: "no-such-command-here"}}, tune: quick})
	ctx := context.Background()
	var wg sync.WaitGroup
	work := func(check bool) {
		for range 8 {
			wg.Go(func() {
				for range 10 {
					for tool, args := range map[string]string{"read_file": `{"path":"f"}`, "own": `{}`, "echo": `{"q":"y"}`} {
						if _, err := s.Call(ctx, tool, json.RawMessage(args)); err != nil && check {
							t.Error(err)
						}
					}
					s.Tools(ctx)
					s.Find(ctx, "nowhere")
					s.Checks(ctx)
				}
			})
		}
	}
	work(true)
	wg.Wait()
	work(false)
	s.Close()
	wg.Wait()
	_, err := s.Call(ctx, "read_file", json.RawMessage(`{"path":"f"}`))
	wantToolErr(t, err, "read_file", "failed", "closed")
}

func BenchmarkReadFile(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("hello\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	s, err := Open(Config{Workspace: dir})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, err := s.Call(context.Background(), "read_file", json.RawMessage(`{"path":"f"}`)); err != nil {
			b.Fatal(err)
		}
	}
}
