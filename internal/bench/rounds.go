package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Sample is one measurement. Exactly one of Wall and Rate is set.
type Sample struct {
	Wall   time.Duration
	Rate   float64 // calls per second
	Faults int64   // minor page faults; -1: not measured
}

// Case is one thing to be measured. Cases of a group are compared with its first.
type Case struct {
	Name string
	Run  func(ctx context.Context) (Sample, error)
	// Goal is the ratio to the base that the project holds itself to, an upper
	// bound for times and a lower bound for rates; 0: none.
	Goal float64
}

// Group is a base and what is compared with it.
type Group struct {
	Name  string
	Cases []Case
}

// Row is what was measured of one case.
type Row struct {
	Group  string  `json:"group"`
	Case   string  `json:"case"`
	N      int     `json:"n"`
	Unit   string  `json:"unit"` // "ms" or "calls/s"
	Median float64 `json:"median"`
	P99    float64 `json:"p99"` // the slowest of a hundred: for a rate the 1st percentile
	Ratio  float64 `json:"ratio"`
	P10    float64 `json:"ratio_p10"`
	P90    float64 `json:"ratio_p90"`
	Faults int64   `json:"minor_faults"`
	Goal   float64 `json:"goal,omitempty"`
	Met    *bool   `json:"met,omitempty"`
}

// Measure runs every case of a group once in each round, in turn. The first
// rounds warm up and are not counted.
func Measure(ctx context.Context, g Group, rounds, warmup int) ([]Row, error) {
	samples := make([][]Sample, len(g.Cases))
	for round := range warmup + rounds {
		for i, c := range g.Cases {
			s, err := c.Run(ctx)
			if err != nil {
				return nil, fmt.Errorf("measure %s, %s: %w", g.Name, c.Name, err)
			}
			if round >= warmup {
				samples[i] = append(samples[i], s)
			}
		}
	}
	rows := make([]Row, len(g.Cases))
	for i, c := range g.Cases {
		rows[i] = row(g.Name, c, samples[i], samples[0])
	}
	return rows, nil
}

func row(group string, c Case, own, base []Sample) Row {
	r := Row{Group: group, Case: c.Name, N: len(own), Unit: "ms", Goal: c.Goal}
	var values, ratios, faults []float64
	for i, s := range own {
		v, b := value(s), value(base[i])
		values, ratios, faults = append(values, v), append(ratios, v/b), append(faults, float64(s.Faults))
	}
	r.Median, r.P99 = quantile(values, 0.5), quantile(values, 0.99)
	r.Ratio, r.P10, r.P90 = quantile(ratios, 0.5), quantile(ratios, 0.1), quantile(ratios, 0.9)
	r.Faults = int64(quantile(faults, 0.5))
	met := r.Ratio <= c.Goal
	if own[0].Rate > 0 {
		r.Unit, r.P99 = "calls/s", quantile(values, 0.01)
		met = r.Ratio >= c.Goal
	}
	if c.Goal > 0 {
		r.Met = &met
	}
	return r
}

func value(s Sample) float64 {
	if s.Rate > 0 {
		return s.Rate
	}
	return float64(s.Wall.Microseconds()) / 1000
}

// quantile of a list, by the nearest rank.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, int(q*float64(len(v))))]
}
