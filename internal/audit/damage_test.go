package audit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belljar/belljar"
)

// Rows that hold what the journal never writes are shown and named.
func TestDamagedRows(t *testing.T) {
	cfg := Config{Path: place(t)}
	j := open(t, cfg)
	appendAll(t, j, call("run_1", "a"), call("run_1", "b"), call("run_1", "c"), call("run_1", "d"))
	db, err := connect(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	for _, sql := range []string{
		"UPDATE records SET duration_ms = -1 WHERE seq = 1",
		"UPDATE records SET ok = 7 WHERE seq = 2",
		"UPDATE records SET outcome = '' WHERE seq = 4",
	} {
		if err := db.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	got, err := j.List(t.Context(), Filter{})
	var damage *DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("List: %v", err)
	}
	if diff := cmp.Diff(&DamageError{cfg.Path, []int64{4, 2, 1}}, damage); diff != "" {
		t.Error(diff)
	}
	if len(got) != 4 {
		t.Errorf("%d records are shown, want all 4", len(got))
	}
	if got, err := j.List(t.Context(), Filter{Name: "c"}); err != nil || len(got) != 1 {
		t.Errorf("the sound record: %+v, %v", got, err)
	}
}

// A page of the file that is overwritten is an error, and never a shorter list.
func TestDamagedPages(t *testing.T) {
	cfg := Config{Path: place(t)}
	j := open(t, cfg)
	for range 400 {
		if err := j.Append(t.Context(), call("run_1", "a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := connect(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	err = db.exec("PRAGMA wal_checkpoint(TRUNCATE)") // or the log would hide the damage
	db.close()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 4096; at+4096 <= len(data); at += 4096 {
		t.Run(fmt.Sprintf("page %d", at/4096), func(t *testing.T) {
			broken := append([]byte(nil), data...)
			copy(broken[at:], strings.Repeat("\xa5", 4096))
			if err := os.WriteFile(cfg.Path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := j.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			got, err := j.List(t.Context(), Filter{Limit: 1000})
			_, byRun := j.List(t.Context(), Filter{Run: "run_1", Limit: 1000})
			if err == nil && byRun == nil && len(got) != 400 {
				t.Errorf("%d records and no error", len(got))
			}
			var r *belljar.Refusal
			if errors.As(err, &r) && (r.Hint == "" || !strings.Contains(r.Reason, "damaged")) {
				t.Errorf("%+v", r)
			}
		})
	}
}
