package main

import (
	"encoding/json"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// regions is how many there are, as in the published evaluation.
const regions = 3

// budgetLimit is the limit of a window, and what is offered in one.
const budgetLimit = 300

// A run is one budget that the regions use for some windows.
type run struct {
	Kind    string
	Skew    float64       // 0: all regions are offered the same; 1: one is offered everything
	Latency time.Duration // of a round trip to the coordinator
	Window  time.Duration
	Batch   int64 // 0: adaptive
	Static  bool  // the baseline: each region has its part and no more
	Keyed   bool  // each value of a key has the limit
	Windows int
}

// offered returns what the region is offered in a window: the first is the hot one.
func (r *run) offered(region int) int {
	if r.Keyed {
		return valuesAsked * (region + 1) / 6
	}
	cold := budgetLimit * (1 - r.Skew) / regions
	if region > 0 {
		return int(cold)
	}
	return budgetLimit - (regions-1)*int(cold)
}

// warmUp is how many windows pass before those that count: the first began before
// the coordinator's memory, and sizes are learned.
const warmUp = 2

var latencies = []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}

var skews = []float64{0, 0.25, 0.5, 0.75, 1}

// plan returns the runs of one kind of coordinator, in rows that are measured one after
// the other.
func plan(kind string) [][]run {
	return [][]run{skewed(kind), distant(kind), ofValues(kind)}
}

// skewed are the runs of the table of skews.
func skewed(kind string) []run {
	var runs []run
	for _, skew := range skews {
		base := run{Kind: kind, Skew: skew, Latency: 2 * time.Millisecond, Window: 5 * time.Second, Windows: 2}
		published, adaptive := base, base
		published.Batch = 8
		runs = append(runs, published, adaptive)
		if kind == redisKind {
			static := base
			static.Static = true
			runs = append(runs, static)
		}
	}
	return runs
}

// distant are the runs of the table of latencies.
func distant(kind string) []run {
	var runs []run
	for _, latency := range latencies {
		slow := run{Kind: kind, Skew: 1, Latency: latency, Window: 10 * time.Second, Windows: 2}
		fixed := slow
		fixed.Batch = 16
		runs = append(runs, fixed, slow)
	}
	return runs
}

// An order is what a process that stands for a region is given.
type order struct {
	Budget  string
	Keyed   bool
	Member  string
	Params  ledger.Params
	Batch   int64
	Way     way
	Offered int       // a window
	Begin   time.Time // of the first window that it offers anything in
	Windows int       // that it offers it in
}

// A way leads to a coordinator.
type way struct {
	Kind    string
	Address string            // host:port, over a link
	Secret  map[string][]byte // of a hub
}

// A tally is what a region counted of a value, or of all, in one window of the coordinator's clock.
type tally struct {
	Hash              string
	Index             int64
	Admitted, Refused int64
}

// A report is what a region counted.
type report struct {
	Tallies  []tally
	Commands int64           // sent to the coordinator while it was offered anything
	Waits    []time.Duration // of every decision, sorted
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data
	}
	return data
}
