package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belljar/belljar"
)

// place is a path for a journal in a folder of its own.
func place(t testing.TB) string {
	return filepath.Join(t.TempDir(), "state", "journal.db")
}

func open(t testing.TB, cfg Config) *Journal {
	t.Helper()
	j, err := Open(cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return j
}

func call(run, tool string) belljar.Record {
	return belljar.Record{Run: run, Session: "ptc", Caller: "cli", Event: "call", Name: "ptc:" + tool, Args: `{"path":"a"}`,
		Outcome: "ok", Summary: "fine", DurationMS: 0.25, OK: true}
}

func appendAll(t testing.TB, j *Journal, records ...belljar.Record) {
	t.Helper()
	for _, r := range records {
		if err := j.Append(t.Context(), r); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}
	if err := j.Flush(t.Context()); err != nil {
		t.Fatalf("Flush: %v", err)
	}
}

func list(t testing.TB, j *Journal, f Filter) []belljar.Record {
	t.Helper()
	got, err := j.List(t.Context(), f)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return got
}

func TestRoundTrip(t *testing.T) {
	cfg := Config{Path: place(t)}
	j := open(t, cfg)
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)
	full := belljar.Record{Time: at, Run: "run_1", Session: "s", Caller: "mcp:x", Event: "run", Name: "execute_code",
		Args: `{"lang":"python"}`, Outcome: "refused", Code: "busy", Summary: "é", DurationMS: 12.5}
	secret := call("run_1", "fetch_url")
	secret.Time, secret.Args, secret.Summary = at.In(time.FixedZone("x", 3600)), `{"token":"abc"}`, "PASSWORD=abc\nline two"
	appendAll(t, j, full, secret)

	full.Seq, secret.Seq = 1, 2
	secret.Time, secret.Args, secret.Summary = at, `{"token":"[redacted]"}`, "PASSWORD=[redacted] line two"
	want := []belljar.Record{secret, full}
	if diff := cmp.Diff(want, list(t, j, Filter{})); diff != "" {
		t.Error(diff)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	// Nothing of the secret may be in the files, and what was written must be there
	// for the next process.
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(cfg.Path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "abc") {
			t.Errorf("the secret is in journal.db%s", suffix)
		}
	}
	if diff := cmp.Diff(want, list(t, open(t, cfg), Filter{})); diff != "" {
		t.Error(diff)
	}
}

// What a caller gets wrong in a record must not stop the records that follow.
func TestOddRecords(t *testing.T) {
	j := open(t, Config{Path: place(t)})
	for name, r := range map[string]belljar.Record{"event": {Name: "x", Outcome: "ok"}, "name": {Event: "call", Outcome: "ok"}, "outcome": {Event: "call", Name: "x"}} {
		if err := j.Append(t.Context(), r); err == nil {
			t.Errorf("a record without %s was taken", name)
		}
	}
	before := time.Now()
	for _, change := range []func(*belljar.Record){
		func(r *belljar.Record) { r.DurationMS = math.NaN() },
		func(r *belljar.Record) { r.DurationMS = math.Inf(1) },
		func(r *belljar.Record) { r.DurationMS = -1 },
		func(r *belljar.Record) { r.Time = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(r *belljar.Record) { r.Name = "ptc:a\x00b\n" + strings.Repeat("x", 10_000) },
		func(r *belljar.Record) { r.Args = "\x00\xff" },
		func(r *belljar.Record) { r.Seq = 1 },
	} {
		r := call("run_1", "x")
		change(&r)
		appendAll(t, j, r)
	}
	got := list(t, j, Filter{})
	if len(got) != 7 {
		t.Fatalf("%d records, want 7", len(got))
	}
	for _, r := range got {
		if r.DurationMS != 0 && r.DurationMS != 0.25 || r.Time.Before(before) || time.Until(r.Time) > 0 || len(r.Name) > maxField || strings.ContainsAny(r.Name, "\x00\n") {
			t.Errorf("kept %+v", r)
		}
	}
}

func TestList(t *testing.T) {
	j := open(t, Config{Path: place(t)})
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 120 {
		r := call(fmt.Sprintf("run_%d", i%3), []string{"read_file", "list_dir"}[i%2])
		r.Time = base.Add(time.Duration(i) * time.Minute)
		if i%10 == 0 {
			r.Session, r.Outcome, r.OK = "other", "denied", false
		}
		if i == 60 {
			r.Event, r.Name, r.Outcome = "run", "execute_code", "exited"
		}
		if err := j.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name        string
		f           Filter
		n           int
		first, last int64
	}{
		{"default limit, newest first", Filter{}, 50, 120, 71},
		{"limit", Filter{Limit: 3}, 3, 120, 118},
		{"large limit", Filter{Limit: 1000}, 120, 120, 1},
		{"run", Filter{Run: "run_1", Limit: 1000}, 40, 119, 2},
		{"session", Filter{Session: "other"}, 12, 111, 1},
		{"tool", Filter{Name: "list_dir", Limit: 1000}, 60, 120, 2},
		{"name as recorded", Filter{Name: "ptc:list_dir", Limit: 2}, 2, 120, 118},
		{"name of a run", Filter{Name: "execute_code"}, 1, 61, 61},
		{"outcome", Filter{Outcome: "denied"}, 11, 111, 1},
		{"since", Filter{Since: base.Add(118 * time.Minute)}, 2, 120, 119},
		{"all together", Filter{Run: "run_0", Session: "other", Name: "read_file", Outcome: "denied", Since: base.Add(time.Minute)}, 2, 91, 31},
		{"none", Filter{Run: "run_9"}, 0, 0, 0},
		{"no SQL", Filter{Run: "' OR 1=1 --"}, 0, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := list(t, j, c.f)
			if len(got) != c.n {
				t.Fatalf("%d records, want %d", len(got), c.n)
			}
			if c.n > 0 && (got[0].Seq != c.first || got[c.n-1].Seq != c.last) {
				t.Errorf("records %d to %d, want %d to %d", got[0].Seq, got[c.n-1].Seq, c.first, c.last)
			}
		})
	}
	if _, err := j.List(t.Context(), Filter{Limit: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.List(ctx, Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("List with an ended context: %v", err)
	}
}

func TestClosed(t *testing.T) {
	j, err := Open(Config{Path: place(t)})
	if err != nil {
		t.Fatal(err)
	}
	for range 300 { // Close commits what nobody flushed
		if err := j.Append(t.Context(), call("run_1", "x")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := j.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	if err := j.Append(t.Context(), call("run_1", "x")); !errors.Is(err, ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	if err := j.Flush(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Flush after Close: %v", err)
	}
	if n := len(list(t, open(t, Config{Path: j.Path()}), Filter{Limit: 1000})); n != 300 {
		t.Errorf("%d records, want 300", n)
	}
}

func TestContextEnds(t *testing.T) {
	j := &Journal{queue: make(chan item), ready: make(chan struct{})} // nobody reads the queue
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller went away")
	cancel(cause)
	j.redactor = redactor(t, Config{})
	if err := j.Append(ctx, call("r", "x")); !errors.Is(err, cause) {
		t.Errorf("Append: %v", err)
	}
	if err := j.Flush(ctx); !errors.Is(err, cause) {
		t.Errorf("Flush: %v", err)
	}
	if err := j.Ready(ctx); !errors.Is(err, cause) {
		t.Errorf("Ready: %v", err)
	}
}

// A journal that cannot be written for a while keeps what it was given and says so.
func TestFailingForAWhile(t *testing.T) {
	cfg := Config{Path: place(t)}
	j := open(t, cfg)
	appendAll(t, j, call("run_1", "a"))

	// A file in the place of the folder stops root, too.
	folder := filepath.Dir(cfg.Path)
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), call("run_1", "b")); err != nil {
		t.Fatal(err)
	}
	var r *belljar.Refusal
	for what, err := range map[string]error{"Flush": j.Flush(t.Context()), "Ready": j.Ready(t.Context())} {
		if !errors.As(err, &r) || r.Code != belljar.CodeAudit || r.Hint == "" || !strings.Contains(r.Reason, cfg.Path) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := 0; ; i++ { // until it takes no more
		err := j.Append(t.Context(), call("run_1", "c"))
		if errors.As(err, &r) {
			break
		}
		if err != nil || i > 2*(maxHeld+queueLength) {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	// Nothing may be under way while the place comes back, or the writer would make
	// a folder of its own there.
	if err := j.Flush(t.Context()); !errors.As(err, &r) {
		t.Fatalf("Flush: %v", err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(folder+".away", folder); err != nil {
		t.Fatal(err)
	}
	if err := j.Ready(t.Context()); err != nil {
		t.Fatalf("Ready when the place is back: %v", err)
	}
	appendAll(t, j, call("run_1", "d"))
	got := list(t, j, Filter{Limit: 1e6})
	if len(got) < maxHeld || got[len(got)-1].Name != "ptc:a" || got[len(got)-2].Name != "ptc:b" || got[0].Name != "ptc:d" {
		t.Errorf("%d records after the failure", len(got))
	}
}

// What is committed must be in the file that has the name.
func TestFileMovedAway(t *testing.T) {
	cfg := Config{Path: place(t)}
	j := open(t, cfg)
	appendAll(t, j, call("run_1", "a"))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(cfg.Path+suffix, cfg.Path+".old"+suffix); err != nil {
			t.Fatal(err)
		}
	}
	appendAll(t, j, call("run_1", "b"))
	if got := list(t, j, Filter{}); len(got) != 1 || got[0].Name != "ptc:b" {
		t.Errorf("got %+v", got)
	}
}

func TestRetain(t *testing.T) {
	cfg := Config{Path: place(t), Retain: "forever"}
	old := time.Now().Add(-91 * 24 * time.Hour)
	j := open(t, cfg)
	for i := range 1200 {
		r := call("run_1", "x")
		r.Time = old
		if i >= 1100 {
			r.Time = time.Now()
		}
		if err := j.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	count := func(j *Journal) int { return len(list(t, j, Filter{Limit: 1e6})) }
	j = open(t, cfg)
	appendAll(t, j, call("run_2", "x"))
	if n := count(j); n != 1201 {
		t.Fatalf("%d records are kept for ever, want 1201", n)
	}
	cfg.Retain = ""
	j = open(t, cfg)
	for i, want := range []int{702, 203, 104, 105} { // 500 at each commit, until none is left
		appendAll(t, j, call("run_2", "x"))
		if n := count(j); n != want {
			t.Errorf("after commit %d: %d records, want %d", i+1, n, want)
		}
	}
	if got := list(t, j, Filter{Limit: 1})[0].Seq; got != 1205 {
		t.Errorf("the newest has number %d, want 1205", got)
	}
}

func TestChecks(t *testing.T) {
	cfg := Config{Path: place(t)}
	j := open(t, cfg)
	appendAll(t, j, call("run_1", "a"), call("run_1", "b"))
	want := []belljar.Check{{Name: "journal", State: belljar.CheckOK, Meaning: cfg.Path + " is writable and holds 2 records in 0.0 MiB."}}
	if diff := cmp.Diff(want, j.Checks(t.Context())); diff != "" {
		t.Error(diff)
	}
	bad, err := Open(Config{Path: filepath.Join(cfg.Path, "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	got := bad.Checks(t.Context())
	if len(got) != 1 || got[0].State != belljar.CheckFail || got[0].Remedy == "" || !strings.Contains(got[0].Meaning, cfg.Path) {
		t.Errorf("got %+v", got)
	}
	if err := bad.Close(); err != nil {
		t.Errorf("Close of a journal that lost nothing: %v", err)
	}
}

// The log must stay short also when every process writes once and ends: each new
// one reads all of it.
func TestLogStaysShort(t *testing.T) {
	cfg := Config{Path: place(t)}
	r := call("run_1", "x")
	r.Args = `{"a":"` + strings.Repeat("x", maxArgs-100) + `"}`
	for range 30 {
		j, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 25 { // 100 KiB, one commit or few
			if err := j.Append(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(cfg.Path + "-wal"); err != nil || info.Size() > maxLog+1<<19 {
			t.Fatalf("log: %v, %v", info, err)
		}
	}
	if n := len(list(t, open(t, cfg), Filter{Limit: 1e6})); n != 30*25 {
		t.Errorf("%d records", n)
	}
}
