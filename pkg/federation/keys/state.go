package keys

import (
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// State is what one memory of a coordinator knows of what all keys of a budget were granted,
// beside what it granted each itself. It is a value: no method writes to what it was given.
type State struct {
	Before Aside // what memories before may have granted
	Saved  Aside // what is set aside for all of them and for this one, as far as it is known to be written
}

// Succeed returns the state of a memory that begins with the record of the one before.
func Succeed(record Aside) State { return State{Before: record, Saved: record} }

// A Window is the window that is open, as the ledger has it. Indexes never fall while the
// length stays the same. When it changes, no window of the former length is open.
type Window struct {
	Length limiter.Micros
	Index  int64
	Pool   int64 // units of the window that a key without an override may have
	Block  int64 // units that are set aside of a key at once; 0: the memory is not lost
	Keys   int64 // that are counted by themselves, 0 for ledger.MaxKeys

	// Withheld are the units of each key's limit that none is granted: Pool has them no more,
	// the limits of Overrides have them. Those are ordered by hash.
	Withheld  int64
	Overrides []ledger.Override
}

// An Ask asks for at least Min and at most Want units of a key, 1 ≤ Min ≤ Want.
type Ask struct{ Min, Want int64 }

// A Grant answers an Ask.
type Grant struct {
	Units     int64 // 0 or from Min to Want
	Remaining int64 // that the key could still be granted
	// Lacks says that the units are there, but have to be set aside first.
	Lacks bool
	// Raise is up to where units should be set aside of the key's group now, 0 for enough.
	// Without Lacks it is ahead of need.
	Raise int64
}

// Take grants units of a key that this memory has granted had units of the window.
func (s State) Take(w Window, group int, had int64, a Ask) Grant {
	before := s.Before.Of(w, group)
	if w.Length == s.Before.Length && w.Index < s.Before.Index {
		before = w.Pool // nobody knows
	}
	used := before + had
	left := max(0, w.Pool-used)
	g := Grant{Remaining: left}
	if left < a.Min {
		return g
	}
	units := min(a.Want, left)
	if w.Block > 0 {
		aside := max(0, s.Saved.Of(w, group)-used)
		if aside < a.Min {
			g.Lacks, g.Raise = true, min(max(used+a.Min, used+w.Block), w.Pool)
			return g
		}
		units = min(units, aside)
		if rest := min(used+units+w.Block, w.Pool); 2*(aside-units) < w.Block && rest > used+aside {
			g.Raise = rest
		}
	}
	g.Units, g.Remaining = units, left-units
	return g
}

// Aside returns the record to be written next: with a block set aside of every key of the
// window, of each group in wants at least that many units, and with the number of counters that
// keys share, if any. It never sets less aside than is: a write whose answer is lost may have
// arrived.
func (s State) Aside(w Window, wants map[int]int64, shared int) Aside {
	next := Aside{Length: w.Length, Index: w.Index}
	switch {
	case w.Length == s.Saved.Length && w.Index < s.Saved.Index:
		return s.Saved
	case s.Saved.is(w):
		next = s.Saved
	}
	base := w.Block
	if s.Before.is(w) {
		base += s.Before.Base
	}
	next.Base = min(max(next.Base, base), limiter.MaxLimit)
	next.Shared = max(next.Shared, shared)
	return next.raised(wants)
}

// Granted returns the record of a memory that grants no more: used are the units that the
// busiest key of each group was granted of the window by this memory, and shared is the number
// of counters that keys shared, if any.
func (s State) Granted(w Window, used map[int]int64, shared int) Aside {
	last := Aside{Length: w.Length, Index: w.Index}
	if s.Before.is(w) {
		last = s.Before
	}
	last.Shared = max(last.Shared, shared)
	wants := make(map[int]int64, len(used))
	for group, units := range used {
		wants[group] = s.Before.Of(w, group) + units
	}
	return last.raised(wants)
}
