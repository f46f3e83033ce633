package concurrency

import "github.com/weir-dev/weir/pkg/concurrency/pool"

// An eagerness is what speaks for a beat before the interval is over.
type eagerness struct {
	starved   bool // a request found no slot since the last beat, because of the share
	fruitless int  // answers in a row that brought a starved holder nothing
	// reserved is what the coordinator keeps for the holder, by what the holder reported.
	reserved int64
	wanted   bool // somebody waits for what the holder gives up
	// unconfirmed says that a memory that knows the holder from its report only waits to
	// hear of the share that it issued; until then the share ends with the quarantine.
	unconfirmed bool
}

// granted learns from the answer to a beat: the share before it was of before units,
// in a fleet of that many holders.
func (e *eagerness) granted(b beat, before, holders int64, g pool.Grant, p pool.Params) {
	switch {
	case g.Share > before, g.Holders != holders, !b.starved:
		e.fruitless = 0
	default:
		e.fruitless++
	}
	e.reserved = max(g.Share, b.InFlight)
	if p.Handoff == pool.Acknowledged {
		e.reserved = max(e.reserved, before)
	}
	e.wanted = wanted(g, p.Allocation)
	e.unconfirmed = g.Quarantined > 0 && g.Term != b.Term
}

// wanted reports whether somebody waits for a larger share. A split by demand leaves
// every holder one more than it uses, and less only to one that waits.
func wanted(g pool.Grant, a pool.Allocation) bool {
	full := g.Limit
	if a == pool.DemandProportional {
		full = min(full, g.InFlight+g.Holders)
	}
	return g.Granted < full
}

// frees reports whether a beat would free what others wait for: push and acknowledge.
func (e *eagerness) frees(share, inFlight int64) bool {
	return e.wanted && inFlight <= share && e.reserved > share
}

// pulls reports whether a beat may fill a share that is less than an even part of the
// limit. After that many in vain it does not.
func (e *eagerness) pulls(share int64, g pool.Grant, patience int) bool {
	return e.starved && e.fruitless < patience && share < even(g)
}

// even returns the part of the limit that each holder has when all have the same.
func even(g pool.Grant) int64 {
	if g.Holders <= 0 {
		return 0
	}
	return g.Limit / g.Holders
}
