package limiter

import (
	"errors"
	"fmt"
	"slices"
)

// Memory is what a store knows of its own past. Windows that began outside it
// may hold grants the store has forgotten, so nothing more is granted from them.
// The zero value remembers everything.
type Memory struct {
	Since Instant // start of the store's uninterrupted memory

	// Gaps are the spans in which the store did not serve although its counts
	// outlived them: a ledger that was handed over knows nothing of what holders
	// did meanwhile on their own. Windows that began in a gap are outside.
	Gaps []Gap

	// Absences are the times in which holders of the counter's limit were not served, as far
	// as windows that began in one may be open. They are not written to.
	Absences []Absence

	// Latest is the newest instant at which the store is known to have decided. A
	// clock that shows less has stepped back, and nothing is granted until it has
	// caught up: a state may have expired in the meantime.
	Latest Instant
}

// A Gap is the span [From, To).
type Gap struct{ From, To Instant }

func (m *Memory) covers(start Instant) bool {
	for _, g := range m.Gaps {
		if start >= g.From && start < g.To {
			return false
		}
	}
	return start >= m.Since
}

// since returns the instant before which nothing is known of the grants that a
// machine without windows looks back on, 0 when all is known. A caller that acts without
// the store begins with a window, so a gap in which none begins hides nothing.
func (m *Memory) since(r Rate) Instant {
	since := m.Since
	for _, g := range m.Gaps {
		if r.start(r.index(g.To-1)) >= g.From {
			since = max(since, g.To)
		}
	}
	return since
}

// After returns the memory of a store that goes on at the instant now with the counts of
// the store that had m, after a gap. Gaps of before are kept while a window that began in
// one may be open.
func (m Memory) After(g Gap, now Instant) Memory {
	gaps := slices.DeleteFunc(slices.Clone(m.Gaps), func(g Gap) bool { return g.To.Add(MaxWindow) <= now })
	return Memory{Since: m.Since, Gaps: append(gaps, g)}
}

// A MemoryID names one uninterrupted memory of a store. The store chooses it, at
// random or from what names its process, so that no two memories have the same.
type MemoryID uint64

// MaxBorn bounds Retention.Born.
const MaxBorn = 64

// Retention says how a store has to keep a counter. Step does not read it: the store
// that runs Step forms Command.Memory from it and from its own past.
type Retention struct {
	// Durable counters survive a restart of the store that loses nothing it
	// acknowledged, as far as the store knows it; the others may be lost with its process.
	Durable bool `json:"durable,omitempty"`
	// Resume continues after a loss of memory with the counts that are left.
	// Otherwise windows that began before the loss grant nothing. Each loss may then
	// admit one more limit. Durable counters only.
	Resume bool `json:"resume,omitempty"`
	// Born are the memories that were uninterrupted when the limit was first put in
	// force, at most MaxBorn. A counter in one of them has forgotten nothing, however
	// old its window is.
	Born []MemoryID `json:"born,omitempty"`
}

// IsBornIn reports whether the memory was uninterrupted since the limit was first put
// in force.
func (r Retention) IsBornIn(m MemoryID) bool { return slices.Contains(r.Born, m) }

func (r Retention) validate() error {
	switch {
	case len(r.Born) > MaxBorn:
		return fmt.Errorf("retention.born has %d memories, more than %d", len(r.Born), MaxBorn)
	case r.Resume && !r.Durable:
		return errors.New("retention.resume is set, but the counter is not durable")
	}
	return nil
}
