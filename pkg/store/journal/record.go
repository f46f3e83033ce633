package journal

import (
	"maps"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Key names a counter of the policy.
type Key struct{ Limit, Hash string }

// A Record is what survives a leader of the durable counters of one policy.
type Record struct {
	Term uint64          // of the leader that wrote it
	Seq  uint64          // of the writes of the term, from 1
	At   limiter.Instant // when it was made, on the store's clock

	Limits map[string]Limit
	Keys   map[Key]Entry
}

// A Limit is what holds for all counters of one limit.
type Limit struct {
	// Since is the instant from which on the record knows what was granted: of windows
	// that began before, something may have been that it does not.
	Since limiter.Instant
	// Unlisted is the same for keys that have no entry: To is the instant, and From when a
	// record was made after which any amount may have been granted of them.
	Unlisted limiter.Gap
	// Longest is the longest window that the limit had.
	Longest limiter.Micros
	// Charges are what terms that crashed may have granted to each key without an entry,
	// oldest first, and Aside what this term may have.
	Charges []Charge
	Aside   int64
	// Overflow says that keys without an entry may have been granted any amount.
	Overflow bool
	// Closed says that the limit is not kept here any more.
	Closed bool
}

// An Entry is what is known of one counter.
type Entry struct {
	State limiter.State // exact when it was entered
	// Lost is the part of State that terms that crashed may not have granted.
	Lost int64
	// Charges are what terms that crashed may have granted since State, oldest first.
	Charges []Charge
	// Aside is what this term may have granted since State. For a counter that is Shared
	// it is the limit's Aside instead.
	Aside  int64
	Shared bool
}

// A Charge is an amount that may have been granted from when a record was made up to an
// instant.
type Charge struct {
	From, At limiter.Instant
	Units    int64
}

// maxCharges bounds a list of charges.
const maxCharges = 32

// charged returns the list with one more charge. Beyond maxCharges the two oldest become
// one at the later instant, from which they count no shorter.
func charged(list []Charge, c Charge) []Charge {
	if c.Units <= 0 {
		return list
	}
	list = append(slices.Clone(list), c)
	if len(list) > maxCharges {
		list[1].From, list[1].Units = list[0].From, list[1].Units+list[0].Units
		list = list[1:]
	}
	return list
}

// counting returns the charges that may still count at now, when each does for at most keep.
func counting(list []Charge, now limiter.Instant, keep limiter.Micros) []Charge {
	for len(list) > 0 && list[0].At.Add(keep) <= now {
		list = list[1:]
	}
	return list
}

func units(list []Charge) int64 {
	var sum int64
	for _, c := range list {
		sum += c.Units
	}
	return sum
}

// keep returns how long a charge may count: it may add up to more than a full bucket.
func (l Limit) keep() limiter.Micros { return 2 * l.Longest }

// succeed returns what the record says to a later term that begins at the instant: all
// that was set aside has been granted.
func (r Record) succeed(at limiter.Instant) Record {
	next := Record{Term: r.Term, At: r.At, Limits: maps.Clone(r.Limits), Keys: make(map[Key]Entry, len(r.Keys))}
	for k, e := range r.Keys {
		aside := e.Aside
		if e.Shared {
			aside = r.Limits[k.Limit].Aside
		}
		e.Charges = charged(e.Charges, Charge{From: r.At, At: at, Units: aside})
		e.Aside, e.Shared = 0, true
		next.Keys[k] = e
	}
	for name, l := range next.Limits {
		l.Charges = charged(l.Charges, Charge{From: r.At, At: at, Units: l.Aside})
		if l.Overflow {
			l.Unlisted = limiter.Gap{From: r.At, To: at}
		}
		l.Aside, l.Overflow = 0, false
		next.Limits[name] = l
	}
	return next
}
