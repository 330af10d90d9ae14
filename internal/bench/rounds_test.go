package bench

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/belljar/belljar/internal/testkit"
)

// steps is a case whose samples are given.
func steps(name string, goal float64, samples ...Sample) Case {
	i := 0
	return Case{Name: name, Goal: goal, Run: func(context.Context) (Sample, error) {
		s := samples[i%len(samples)]
		i++
		return s, nil
	}}
}

func TestMeasure(t *testing.T) {
	at := func(ms int) Sample { return Sample{Wall: time.Duration(ms) * time.Millisecond, Faults: int64(ms)} }
	// The machine is slow in every other round: times say little, ratios hold.
	rows, err := Measure(t.Context(), Group{"times", []Case{
		steps("base", 0, at(10), at(100)), steps("twice", 2.5, at(20), at(200)), steps("four", 2.5, at(40), at(400)),
	}}, 20, 2)
	if err != nil {
		t.Fatal(err)
	}
	if rows[1].Ratio != 2 || rows[1].P10 != 2 || rows[1].P90 != 2 || rows[1].Met == nil || !*rows[1].Met || rows[1].N != 20 {
		t.Errorf("%+v", rows[1])
	}
	if rows[2].Ratio != 4 || *rows[2].Met || rows[0].Met != nil || rows[0].Ratio != 1 {
		t.Errorf("%+v", rows)
	}

	rows, err = Measure(t.Context(), Group{"rates", []Case{
		steps("base", 0, Sample{Rate: 1000}), steps("three", 2, Sample{Rate: 3000}), steps("half", 2, Sample{Rate: 500}),
	}}, 5, 0)
	if err != nil || !*rows[1].Met || *rows[2].Met || rows[1].Unit != "calls/s" {
		t.Errorf("%+v %v", rows, err)
	}

	broken := errors.New("broken")
	if _, err := Measure(t.Context(), Group{"x", []Case{{Name: "y", Run: func(context.Context) (Sample, error) { return Sample{}, broken }}}}, 5, 0); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v = %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 || v[0] != 5 {
		t.Error("an empty or a changed list")
	}
}

// TestRun plays the whole comparison in a few rounds: everything in it works, and
// what is noise-free is as it should be. It asserts no times.
func TestRun(t *testing.T) {
	testkit.Need(t, "userns", "debian-python", "gcc")
	dir, bin, err := compileHello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(dir)
	if bin == "" {
		t.Fatal("no program")
	}
	rows, skipped, err := Run(t.Context(), Options{Rounds: 5, Calls: 40})
	if err != nil {
		t.Fatal(err)
	}
	if len(skipped) > 0 {
		t.Errorf("left out: %v", skipped)
	}
	bases := map[string]Row{}
	for _, r := range rows {
		if r.Ratio == 1 && r.P10 == 1 {
			bases[r.Group] = r
			continue
		}
		// Setting a sandbox up may not cost more than a few pages.
		if base := bases[r.Group]; r.Case == "cold sandbox" && (r.Faults < base.Faults/2 || r.Faults > base.Faults+60) {
			t.Errorf("%s, %s: %d page faults, bare %d", r.Group, r.Case, r.Faults, base.Faults)
		}
	}
	if len(bases) != 4 {
		t.Errorf("groups: %v", bases)
	}
}
