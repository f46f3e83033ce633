package keyed_test

import (
	"time"

	"github.com/weir-dev/weir/pkg/federation/coordinator/counters"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	storememory "github.com/weir-dev/weir/pkg/store/memory"
)

// A trial is one row of the table in docs/federation.md.
type trial struct {
	name      string
	store     bool // the counters of a store, else a hub that sets blocks aside
	hubKeys   int  // that are counted by themselves; 0 for all
	keys      int  // that a region remembers; 0 for all
	overrides []ledger.Override
	events    []event // ordered
	least     float64 // of what could be admitted: what was measured, less 0.02 to 0.05 for the order of goroutines
	// reaches reports whether a region reaches the coordinator after that time; nil: all do, always.
	reaches func(region int, passed time.Duration) bool
	kept    *shelf
}

// An event happens after a time.
type event struct {
	at time.Duration
	do func(*town)
}

const (
	middle = trialTime / 2
	away   = 4 * time.Second // how long a coordinator is, from the middle on
)

// begin puts the coordinator in its place, and returns where it writes.
func (c *trial) begin(w *town) *shelf {
	c.kept = &shelf{records: map[string]kubernetes.Record{}}
	if c.store {
		w.hub.ReplaceValues(func(keyed.Coordinator) keyed.Coordinator { return storeCounters(w, true) })
	} else {
		c.kept.begin(w.hub)
	}
	return c.kept
}

// storeCounters are of a store whose memory begins now.
func storeCounters(w *town, first bool) keyed.Coordinator {
	return counters.New(storememory.New(storememory.Options{Clock: w.hub.Now, First: first}))
}

// trials returns the rows in their order.
func trials() []*trial {
	killed := func(c *trial) *trial {
		c.events = []event{{middle, func(w *town) { c.kept.begin(w.hub) }}}
		return c
	}
	gone := func(c *trial) *trial {
		var before keyed.Coordinator
		c.events = []event{
			{middle, func(w *town) { before = w.hub.ReplaceValues(func(keyed.Coordinator) keyed.Coordinator { return nil }) }},
			{middle + away, func(w *town) { w.hub.ReplaceValues(func(keyed.Coordinator) keyed.Coordinator { return before }) }},
		}
		c.reaches = func(_ int, passed time.Duration) bool { return passed < middle || passed > middle+away }
		return c
	}
	return []*trial{
		{name: "a hub, nothing fails", least: 0.95},
		{name: "the counters of a store, nothing fails", store: true, least: 0.97},
		{name: "ten values have limits of their own", overrides: ten(), least: 0.95},
		{
			name: "a region is cut off", least: 0.95,
			events:  []event{{middle, func(w *town) { w.lines[2].SetCut(true) }}},
			reaches: func(region int, passed time.Duration) bool { return region != 2 || passed < middle },
		},
		gone(&trial{name: "the hub is away for 4 s", least: 0.85}),
		gone(&trial{name: "the store is away for 4 s", store: true, least: 0.83}),
		killed(&trial{name: "the hub is killed, and another begins", least: 0.93}),
		{
			name: "the store loses its memory", store: true, least: 0.96,
			events: []event{{middle, func(w *town) {
				w.hub.ReplaceValues(func(keyed.Coordinator) keyed.Coordinator { return storeCounters(w, false) })
			}}},
			reaches: func(_ int, passed time.Duration) bool { return passed < middle || passed > 2*trialWindow },
		},
		{name: "regions remember 1,000 values", keys: 1000, least: 0.94},
		{name: "`maxKeys` is 2,000", hubKeys: 2000, least: 0.6},
		killed(&trial{name: "`maxKeys` is 2,000, and the hub is killed", hubKeys: 2000, least: 0.53}),
	}
}

// ten returns overrides of the values that are most in demand: every second has more than the
// others, the rest fewer.
func ten() []ledger.Override {
	var out []ledger.Override
	for i := range 10 {
		limit := int64(10 * trialLimit)
		if i%2 == 1 {
			limit = trialLimit / 4
		}
		out = append(out, ledger.Override{Hash: string([]byte{'k', '0' + byte(i)}), Limit: limit, Block: max(1, limit/10)})
	}
	return out
}
