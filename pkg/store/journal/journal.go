package journal

import (
	"math"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Journal is the part of a term that decides on the counters of one policy.
type Journal struct {
	term, seq, acked uint64
	opened           uint64
	fenced           bool
	known            limiter.Instant // this term knows by itself what was granted since

	limits  map[string]*section
	entries map[Key]Entry // of the record that was made last
	leaving map[Key]int64 // had an entry in the record before: what it set aside
	dirty   map[Key]struct{}
	gone    map[Key]struct{} // have no counter any more
	changed bool             // something else is to be written
	urgent  bool             // somebody waits for that
	bytes   int              // of the entries, at most
	most    int              // that it may be
}

// A section is one limit.
type section struct {
	Limit        // as in the record that was made last
	made  uint64 // its number, 0 when it is in none of this term
	// shared and overflow are what the record before says, while that may be the last.
	shared   int64
	overflow bool
	opened   uint64          // distinguishes it from one of that name that was closed
	limit    int64           // the smallest of a counter's longest window, 0 while not known
	past     limiter.Instant // as Since, for this term
	crowded  bool            // there was no room for an entry
	beyond   limiter.Instant // when overflow was last made use of
}

// New returns the journal of a term that begins at the instant and goes on from a record,
// the zero Record for none. The term knows by itself what was granted since the instant
// known: its counters are in memory. The parameter most bounds the bytes of a record's
// entries.
func New(term uint64, at limiter.Instant, from Record, known limiter.Instant, most int) *Journal {
	next := from.succeed(at)
	j := &Journal{
		term: term, known: known, limits: map[string]*section{}, entries: next.Keys, leaving: map[Key]int64{},
		dirty: map[Key]struct{}{}, gone: map[Key]struct{}{}, most: most,
	}
	for name, l := range next.Limits {
		j.limits[name] = &section{Limit: l, past: l.Since}
	}
	for k, e := range j.entries {
		j.bytes += size(k, e)
	}
	return j
}

// A Scope is what a journal has to know of a limit.
type Scope struct {
	Window limiter.Micros // the longest
	Limit  int64          // units of that window, the fewest of all counters
	// Past is the instant since which this term knows what was granted, and Since the one
	// since which nothing was that the journal does not know. Both belong to a limit that
	// is not kept yet.
	Past, Since limiter.Instant
}

// Open has the journal keep a limit.
func (j *Journal) Open(name string, o Scope) {
	s := j.limits[name]
	if s == nil || s.Closed {
		j.drop(name)
		j.opened++
		s = &section{Limit: Limit{Since: o.Since, Longest: o.Window}, past: o.Past, opened: j.opened}
		j.limits[name], j.changed = s, true
	}
	s.past, s.limit = min(s.past, o.Past), o.Limit
	if o.Window > s.Longest {
		s.Longest, j.changed = o.Window, true
	}
}

// Keeps reports whether the limit was opened in this term, with windows of that length.
func (j *Journal) Keeps(name string, window limiter.Micros) bool {
	s := j.limits[name]
	return s != nil && !s.Closed && s.limit > 0 && window <= s.Longest
}

// Close has the journal keep a limit no more: what is granted from now on, it does not
// know. It counts when the next record is acknowledged.
func (j *Journal) Close(name string) {
	if s := j.limits[name]; s != nil && !s.Closed {
		j.drop(name)
		s.Closed, s.Charges, s.Aside, s.Overflow = true, nil, 0, false
		j.changed = true
	}
}

// Reset forgets what was granted of a limit, of the key alone unless it is nil.
func (j *Journal) Reset(name string, hash *string) {
	s := j.limits[name]
	switch {
	case s == nil:
	case hash != nil:
		k := Key{Limit: name, Hash: *hash}
		e, ok := j.entries[k]
		if !ok {
			e.Shared = true
			j.bytes += size(k, e)
		}
		e.State, e.Charges, e.Lost = limiter.State{}, nil, 0
		j.entries[k], j.changed = e, true
	default:
		for k, e := range j.entries {
			if k.Limit == name {
				e.State, e.Charges, e.Lost = limiter.State{}, nil, 0
				j.entries[k] = e
			}
		}
		s.Charges, s.Unlisted, s.Since, s.past = nil, limiter.Gap{}, 0, 0
		j.changed = true
	}
}

// drop forgets the entries of a limit.
func (j *Journal) drop(name string) {
	for k, e := range j.entries {
		if k.Limit == name {
			j.bytes -= size(k, e)
			delete(j.entries, k)
		}
	}
}

// Past returns the instant since which is known what was granted of a counter that is
// kept.
func (j *Journal) Past(k Key) limiter.Instant {
	s := j.limits[k.Limit]
	if _, listed := j.entries[k]; listed || s.Unlisted.From >= j.known {
		return s.past
	}
	return max(s.past, s.Unlisted.To)
}

// State returns the state of a counter that is not in memory, by the parameters. It is the
// entry's own when that is of a newer generation: Step refuses them.
func (j *Journal) State(k Key, p limiter.Params) limiter.State {
	e, listed := j.entries[k]
	if !listed {
		e.Charges = j.limits[k.Limit].Charges
	}
	state := e.State
	if p.Generation < state.Generation {
		return state
	}
	for _, c := range j.unknown(e.Charges) {
		state = p.Charge(state, c.At, c.Units)
	}
	return state
}

// unknown returns the charges whose grants this term does not know.
func (j *Journal) unknown(list []Charge) []Charge {
	return slices.DeleteFunc(slices.Clone(list), func(c Charge) bool { return c.From >= j.known })
}

// Account returns the account of a counter that has none: one whose state is that of
// State, or is known by this term itself.
func (j *Journal) Account(k Key) *Account {
	delete(j.gone, k)
	e, listed := j.entries[k]
	if !listed {
		e.Charges = j.limits[k.Limit].Charges
	}
	a := &Account{lost: e.Lost + units(j.unknown(e.Charges)), opened: j.limits[k.Limit].opened}
	aside, leaves := j.leaving[k]
	switch {
	case listed && !e.Shared && j.InFlight():
		a.last, a.next, a.seq = bound{own: true}, bound{own: true, aside: e.Aside}, j.seq
	case listed && !e.Shared:
		a.last = bound{own: true, aside: e.Aside}
	case leaves && j.InFlight():
		a.last, a.seq = bound{own: true, aside: aside}, j.seq
	}
	return a
}

// Left returns how many units may be granted of a counter now.
func (j *Journal) Left(k Key, a *Account) int64 {
	s := j.limits[k.Limit]
	if j.fenced || s == nil || s.Closed || j.acked == 0 {
		return 0
	}
	j.renew(k, a)
	a.settle(j.acked)
	return a.left(s.allowed(j.acked))
}

// renew begins a new account in place of one from before the limit was closed.
func (j *Journal) renew(k Key, a *Account) {
	if s := j.limits[k.Limit]; a.opened != s.opened {
		*a = *j.Account(k)
	}
}

// spend enters that units were granted, at most Left.
func (j *Journal) spend(k Key, a *Account, n int64, now limiter.Instant) {
	s := j.limits[k.Limit]
	a.spend(n)
	switch {
	case s.overflows(j.acked) && !a.last.own:
		s.beyond = now
	case a.low(s.allowed(j.acked)):
		j.dirty[k] = struct{}{}
	}
}

// await enters that units could not be granted, because they are not set aside.
func (j *Journal) await(k Key, a *Account, n int64) {
	s := j.limits[k.Limit]
	j.changed, j.urgent = true, true
	if s == nil || s.Closed || s.made == 0 || s.made == j.seq && s.made > j.acked && s.shared == 0 {
		return // what is set aside of every counter by the next record may be enough
	}
	a.waiting, a.asked = plus(a.waiting, n), plus(a.asked, n)
	j.dirty[k] = struct{}{}
}

// Forget drops a counter that has nothing left that counts.
func (j *Journal) Forget(k Key) {
	delete(j.dirty, k)
	if e, listed := j.entries[k]; listed && !e.Shared {
		j.gone[k] = struct{}{}
	}
}

// allowed returns how much of every counter without an entry may be granted.
func (s *section) allowed(acked uint64) int64 {
	switch {
	case s.overflows(acked):
		return math.MaxInt64
	case s.made != 0 && s.made <= acked:
		return s.Aside
	}
	return s.shared
}

// overflows reports whether counters without an entry may be granted any amount.
func (s *section) overflows(acked uint64) bool {
	return s.Overflow && (s.made <= acked || s.overflow)
}
