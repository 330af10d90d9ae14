package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/policy"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/google/go-cmp/cmp"
)

// callOnce runs a script that makes one call and gives what it was told.
func (w *world) callOnce(req *belljar.Request, tool, args string) (belljar.Value, *belljar.ToolError, *belljar.Result) {
	w.t.Helper()
	var value belljar.Value
	var failure *belljar.ToolError
	w.program = func(ctx context.Context, _ *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		v, err := h.Call(ctx, tool, json.RawMessage(args))
		if err != nil && !errors.As(err, &failure) {
			w.t.Errorf("error %v is no ToolError", err)
		}
		value = v
		return good(), nil
	}
	res := w.run(context.Background(), req)
	return value, failure, res
}

func TestCall(t *testing.T) {
	fenced := func(names ...string) *belljar.Request {
		r := script("1")
		r.Fence = append([]string{}, names...)
		return r
	}
	for _, tt := range []struct {
		name    string
		change  func(w *world)
		req     *belljar.Request
		tool    string
		code    string
		denied  bool
		reason  string
		outcome string
		metric  string
		summary string
	}{
		{name: "ok", tool: "read_file", outcome: "ok", metric: "call read_file ok", summary: `read_file{"path":"a"}`},
		{name: "unknown", tool: "nothing", code: "unknown_tool", reason: "tool 'nothing' not available", outcome: "error", metric: "call  error"},
		{name: "never bridged", tool: "execute_code", code: "never_bridged", reason: "tool 'execute_code' not available", outcome: "error", metric: "call execute_code error"},
		{name: "outside the curated set", tool: "drop_table", code: "not_bridged", reason: "tool 'drop_table' not available", outcome: "error", metric: "call drop_table error"},
		{name: "fence", req: fenced("list_dir"), tool: "read_file", code: "fence", denied: true, outcome: "denied", metric: "call read_file denied",
			reason: "Blocked by policy: tool 'read_file' is outside this turn's tool allowlist (list_dir) — work within the allowed tools."},
		{name: "deny list", change: func(w *world) { w.policy.Deny = []string{"read_file"} }, tool: "read_file", code: "disabled", denied: true, outcome: "denied",
			metric: "call read_file denied", reason: "Blocked by policy: Tool 'read_file' is disabled by policy."},
		{name: "the tool fails", change: func(w *world) {
			w.tool = func(context.Context, string, json.RawMessage) (belljar.Value, error) {
				return belljar.Value{}, &belljar.ToolError{Tool: "read_file", Code: "failed", Reason: "no such file: a"}
			}
		}, tool: "read_file", code: "failed", reason: "no such file: a", outcome: "error", metric: "call read_file error"},
		{name: "the tool fails inside", change: func(w *world) {
			w.tool = func(context.Context, string, json.RawMessage) (belljar.Value, error) { return belljar.Value{}, errDisk }
		}, tool: "read_file", code: "failed", reason: "the tool failed inside (fault fault_", outcome: "error", metric: "call read_file error"},
		{name: "the tool panics", change: func(w *world) {
			w.tool = func(context.Context, string, json.RawMessage) (belljar.Value, error) { panic("nil map") }
		}, tool: "read_file", code: "failed", reason: "the tool failed inside (fault fault_", outcome: "error", metric: "call read_file error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.change != nil {
				tt.change(w)
			}
			req := tt.req
			if req == nil {
				req = script("1")
			}
			value, failure, res := w.callOnce(req, tt.tool, `{"path":"a"}`)
			if tt.code == "" {
				if failure != nil || string(value.Data) != `read_file{"path":"a"}` {
					t.Errorf("%q, %v", value.Data, failure)
				}
			} else if failure == nil || failure.Code != tt.code || failure.Denied != tt.denied || !strings.HasPrefix(failure.Reason, tt.reason) || failure.Tool != tt.tool {
				t.Errorf("failure %+v", failure)
			} else if strings.Contains(failure.Reason, "disk full") || strings.Contains(failure.Reason, "nil map") {
				t.Errorf("the script sees our inside: %s", failure.Reason)
			}
			ok := tt.code == ""
			if res.ToolCalls.Count != 1 || (res.ToolCalls.Denied == 1) != tt.denied || len(res.ToolCalls.Calls) != 1 {
				t.Fatalf("tool calls %+v", res.ToolCalls)
			}
			if c := res.ToolCalls.Calls[0]; c.Tool != tt.tool || c.OK != ok || c.Denied != tt.denied || c.Bytes != int64(len(value.Data)) {
				t.Errorf("call %+v", c)
			}
			records := w.journal.records()
			if len(records) != 2 {
				t.Fatalf("%d records", len(records))
			}
			summary := tt.summary
			if failure != nil {
				summary = failure.Reason
			}
			if r := records[0]; r.Name != "ptc:"+tt.tool || r.Event != "call" || r.Outcome != tt.outcome || r.Code != tt.code || r.OK != ok || r.Run != res.ID ||
				r.Session != "ptc" || r.Args != `{"path":"a"}` || r.Summary != summary || r.Time.IsZero() {
				t.Errorf("record %+v", r)
			}
			if diff := cmp.Diff([]string{tt.metric, "run script python exited"}, w.metrics.lines); diff != "" {
				t.Errorf("metrics: %s", diff)
			}
		})
	}
}

// The same question gets the same answer, whoever asks.
func TestDirectCall(t *testing.T) {
	w := newWorld(t)
	w.policy.Deny = []string{"read_file"}
	_, failure, _ := w.callOnce(script("1"), "read_file", `{}`)
	_, err := w.engine().CallTool(context.Background(), Call{Session: "s", Caller: "agent", Via: policy.ViaDirect, Tool: "read_file", Args: json.RawMessage(`{}`)})
	if diff := cmp.Diff(error(failure), err); diff != "" {
		t.Errorf("script and agent are told differently: %s", diff)
	}
	if err := w.journal.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	records := w.journal.records()
	if r := records[len(records)-1]; r.Name != "read_file" || r.Session != "s" || r.Caller != "agent" || r.Outcome != "denied" {
		t.Errorf("record %+v", r)
	}
	value, err := w.engine().CallTool(context.Background(), Call{Via: policy.ViaDirect, Tool: "list_dir", Args: json.RawMessage(`{}`)})
	if err != nil || string(value.Data) != "list_dir{}" {
		t.Errorf("%q, %v", value.Data, err)
	}
}

func TestBudget(t *testing.T) {
	w := newWorld(t)
	w.policy.MaxCallsPerRun = 3
	var codes []string
	w.program = func(ctx context.Context, _ *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		for range 5 {
			_, err := h.Call(ctx, "read_file", json.RawMessage(`{}`))
			var failure *belljar.ToolError
			errors.As(err, &failure)
			if failure == nil {
				failure = &belljar.ToolError{}
			}
			codes = append(codes, failure.Code)
		}
		return good(), nil
	}
	res := w.run(context.Background(), script("1"))
	if diff := cmp.Diff([]string{"", "", "", "budget", "budget"}, codes); diff != "" {
		t.Error(diff)
	}
	if res.ToolCalls.Count != 5 || res.ToolCalls.Denied != 2 {
		t.Errorf("tool calls %+v", res.ToolCalls)
	}
}

// However often a run is refused, the journal gets a bounded number of records,
// and the counts stay true.
func TestRefusalsAreBounded(t *testing.T) {
	const calls = 3000
	for _, tt := range []struct {
		name     string
		deny     []string
		fence    []string
		tool     string
		budget   int
		allowed  int // calls that are made before
		recorded int // refusals with a record of their own
		denied   int64
		first    string // code of the first refusal
		more     int    // refusals that share one record
	}{
		{name: "beyond the budget", tool: "read_file", budget: 3, allowed: 3, recorded: 100, first: "budget", denied: calls - 3, more: calls - 103},
		{name: "the fence", tool: "read_file", fence: []string{"list_dir"}, budget: 50, recorded: 1000, first: "fence", denied: calls, more: calls - 1000},
		{name: "disabled", tool: "read_file", deny: []string{"*_file"}, recorded: 1000, first: "disabled", denied: calls, more: calls - 1000},
		{name: "no such tool", tool: "nothing", recorded: 1000, first: "unknown_tool", denied: calls - 1000, more: calls - 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.policy.MaxCallsPerRun, w.policy.Deny = tt.budget, tt.deny
			codes := map[string]int{}
			w.program = func(ctx context.Context, _ *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
				for range calls {
					_, err := h.Call(ctx, tt.tool, json.RawMessage(`{}`))
					if failure, ok := errors.AsType[*belljar.ToolError](err); ok {
						codes[failure.Code]++
						if failure.Tool != tt.tool || failure.Reason == "" {
							t.Fatalf("failure %+v", failure)
						}
					}
				}
				return good(), nil
			}
			req := script("1")
			req.Fence = tt.fence
			res := w.run(context.Background(), req)
			if res.ToolCalls.Count != calls || res.ToolCalls.Denied != tt.denied {
				t.Errorf("tool calls: %d, denied %d", res.ToolCalls.Count, res.ToolCalls.Denied)
			}
			want := map[string]int{tt.first: tt.recorded}
			want["budget"] += tt.more
			if diff := cmp.Diff(want, codes); diff != "" {
				t.Errorf("codes: %s", diff)
			}
			records := w.journal.records()
			if n := len(records); n != tt.allowed+tt.recorded+2 {
				t.Fatalf("%d records", n)
			}
			last := records[len(records)-2]
			last.Time, last.Run = time.Time{}, ""
			if diff := cmp.Diff(belljar.Record{Session: "ptc", Caller: "test", Event: "call", Name: "ptc:(refused)", Args: "{}", Outcome: "denied", Code: "budget",
				Summary: fmt.Sprintf("%d further calls were refused because the run's budget was used up", tt.more)}, last); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Refusals from many threads are counted all the same.
func TestRefusalsHammer(t *testing.T) {
	w := newWorld(t)
	w.policy.MaxCallsPerRun = 10
	w.program = func(ctx context.Context, _ *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 200 {
					_, _ = h.Call(ctx, "read_file", json.RawMessage(`{}`))
				}
			})
		}
		wg.Wait()
		return good(), nil
	}
	res := w.run(context.Background(), script("1"))
	if res.ToolCalls.Count != 1600 || res.ToolCalls.Denied != 1590 {
		t.Errorf("tool calls: %d, denied %d", res.ToolCalls.Count, res.ToolCalls.Denied)
	}
	records := w.journal.records()
	if n := len(records) - 2; n < 110 || n > 110+8 {
		t.Fatalf("%d calls recorded", n)
	}
	if want := fmt.Sprintf("%d further calls were refused because the run's budget was used up", 1600-len(records)+2); records[len(records)-2].Summary != want {
		t.Errorf("summary %q, want %q", records[len(records)-2].Summary, want)
	}
}

// A call whose caller is gone is recorded as cut off and counts as unanswered.
func TestCutOff(t *testing.T) {
	w := newWorld(t)
	w.tool = func(ctx context.Context, _ string, _ json.RawMessage) (belljar.Value, error) {
		<-ctx.Done()
		return belljar.Value{Data: []byte("too late")}, nil
	}
	w.program = func(ctx context.Context, _ *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		gone, cancel := context.WithCancelCause(ctx)
		cancel(bridge.ErrGone)
		if v, err := h.Call(gone, "read_file", json.RawMessage(`{}`)); err == nil || v.Data != nil {
			t.Errorf("answer %q, %v", v.Data, err)
		}
		x := good()
		x.Cause, x.Wait = sandbox.CauseTimeout, 9
		return x, nil
	}
	res := w.run(context.Background(), script("1"))
	if res.ToolCalls.Count != 0 || len(res.ToolCalls.Calls) != 0 {
		t.Errorf("tool calls %+v", res.ToolCalls)
	}
	if r := w.journal.records()[0]; r.Outcome != "cut_off" || r.Code != "cut_off" || r.OK {
		t.Errorf("record %+v", r)
	}
}

func TestBytesKeptOut(t *testing.T) {
	for _, tt := range []struct {
		name          string
		result, print int
		want          int64
	}{{"most", 1000, 10, 2990}, {"all the same", 10, 30, 0}, {"more was printed", 10, 5000, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.tool = func(context.Context, string, json.RawMessage) (belljar.Value, error) {
				return belljar.Value{Kind: belljar.ValueBytes, MediaType: "image/png", Data: make([]byte, tt.result)}, nil
			}
			w.program = func(ctx context.Context, s *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
				for range 3 {
					if _, err := h.Call(ctx, "read_file", json.RawMessage(`{}`)); err != nil {
						return nil, err
					}
				}
				_, err := h.Call(ctx, "nothing", json.RawMessage(`{}`))
				fmt.Fprint(s.Stdout, strings.Repeat("x", tt.print))
				if err == nil {
					return nil, errors.New("an unknown tool answered")
				}
				return good(), nil
			}
			res := w.run(context.Background(), script("1"))
			if res.ToolCalls.BytesKeptOut != tt.want || w.metrics.keptOut != tt.want {
				t.Errorf("kept out %d, want %d", res.ToolCalls.BytesKeptOut, tt.want)
			}
			if r := w.journal.records()[0]; r.Summary != fmt.Sprintf("%d bytes of image/png", tt.result) {
				t.Errorf("summary %q", r.Summary)
			}
		})
	}
}

// The result lists the first hundred calls and counts them all.
func TestManyCalls(t *testing.T) {
	w := newWorld(t)
	w.program = func(ctx context.Context, _ *sandbox.Spec, h bridge.Handler) (*sandbox.Exit, error) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 32 {
					if _, err := h.Call(ctx, "read_file", json.RawMessage(`{}`)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return good(), nil
	}
	res := w.run(context.Background(), script("1"))
	if res.ToolCalls.Count != 256 || len(res.ToolCalls.Calls) != 100 {
		t.Errorf("count %d, listed %d", res.ToolCalls.Count, len(res.ToolCalls.Calls))
	}
	if n := len(w.journal.records()); n != 257 {
		t.Errorf("%d records", n)
	}
}

// A call that ignores its end may come back after the run; it changes nothing that
// was given out.
func TestCallAfterEnd(t *testing.T) {
	w := newWorld(t)
	var h bridge.Handler
	w.program = func(_ context.Context, _ *sandbox.Spec, handler bridge.Handler) (*sandbox.Exit, error) {
		h = handler
		return good(), nil
	}
	var after bool
	res, err := w.engine().Run(context.Background(), script("1"), func(belljar.Event) {
		if after {
			t.Error("an event came after the end")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	after = true
	if _, err := h.Call(context.Background(), "read_file", json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if res.ToolCalls.Count != 0 {
		t.Errorf("tool calls %+v", res.ToolCalls)
	}
}
