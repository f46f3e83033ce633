package journal

import (
	"maps"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Due reports whether a record is to be written, and whether somebody waits for it.
func (j *Journal) Due() (due, urgent bool) {
	if j.fenced || j.InFlight() {
		return false, false
	}
	return j.changed || len(j.dirty) > 0, j.urgent
}

// InFlight reports whether the result of a write is not known yet.
func (j *Journal) InFlight() bool { return j.acked < j.seq }

// Dirty returns the counters that are to be entered in the next record, in order.
func (j *Journal) Dirty() []Key {
	return slices.SortedFunc(maps.Keys(j.dirty), compareKeys)
}

// Enter has the next record list a counter as it is now, and how much may be granted of
// it from now on: enough for some writes at that pace. Nothing is in flight.
func (j *Journal) Enter(k Key, a *Account, state limiter.State, now limiter.Instant, pace limiter.Micros) {
	delete(j.dirty, k)
	s := j.limits[k.Limit]
	if s == nil || s.Closed {
		return
	}
	j.renew(k, a)
	a.settle(j.acked)
	e := Entry{State: state, Lost: a.lost, Aside: a.block(s.limit, now, pace)}
	before, listed := j.entries[k]
	grown := size(k, e)
	if listed {
		grown -= size(k, before)
	}
	if j.bytes+grown > j.most && !a.last.own {
		s.crowded, j.changed = true, true
		return
	}
	j.bytes += grown
	j.entries[k] = e
	a.next, a.seq = bound{own: true, aside: e.Aside}, j.seq+1
	a.asked, a.waiting, a.entered = 0, 0, now
	j.changed = true
}

// Write makes the next record. It is in flight until Acknowledge. Its map of
// keys is the journal's: it changes with the next Enter, Write, Open, Close and Reset.
func (j *Journal) Write(now limiter.Instant) Record {
	j.prune(now)
	j.seq++
	limits := make(map[string]Limit, len(j.limits))
	for name, s := range j.limits {
		if s.made != 0 {
			s.shared, s.overflow = s.Aside, s.Overflow // of the record that was acknowledged
		}
		s.made = j.seq
		s.Charges = counting(s.Charges, now, s.keep())
		if s.limit > 0 && !s.Closed {
			s.Aside = max(s.Aside, allowance(s.limit, units(s.Charges)))
		}
		switch {
		case s.crowded:
			s.Overflow, s.crowded, s.beyond = true, false, now
		case s.beyond.Add(s.keep()) <= now:
			s.Overflow = false
		}
		limits[name] = s.Limit
	}
	j.changed, j.urgent = false, false
	return Record{Term: j.term, Seq: j.seq, At: now, Limits: limits, Keys: j.entries}
}

// prune drops the entries that have nothing left that counts.
func (j *Journal) prune(now limiter.Instant) {
	clear(j.leaving)
	for k, e := range j.entries {
		_, gone := j.gone[k]
		s := j.limits[k.Limit]
		counts := e.State.KeepFor(now) > 0 || len(counting(e.Charges, now, s.keep())) > 0
		if !gone && (!e.Shared || counts || len(counting(s.Charges, now, s.keep())) > 0) {
			continue // without an entry the limit's charges would be its own
		}
		if gone {
			j.leaving[k] = e.Aside
		}
		j.bytes -= size(k, e)
		delete(j.entries, k)
	}
	clear(j.gone)
}

// Acknowledge says that the record of that number was written.
func (j *Journal) Acknowledge(seq uint64) { j.acked = max(j.acked, min(seq, j.seq)) }

// Began reports whether a record of this term was acknowledged.
func (j *Journal) Began() bool { return j.acked > 0 }

// Settled reports whether all that is to be written is.
func (j *Journal) Settled() bool { return j.fenced || !j.InFlight() && !j.changed && len(j.dirty) == 0 }

// Fence says that a later term has begun: nothing is granted any more.
func (j *Journal) Fence() { j.fenced = true }

// Bytes returns how many bytes the entries take at most.
func (j *Journal) Bytes() int { return j.bytes }

// Entries returns the number of entries.
func (j *Journal) Entries() int { return len(j.entries) }

// size returns how many bytes an entry takes at most, as package memory encodes it.
func size(k Key, e Entry) int {
	n := 8 + len(k.Hash)/2 + 8*len(e.Charges) + 32
	for _, m := range e.State.Slice() {
		n += 24 + 14*len(m.Log)
	}
	for _, t := range e.State.Tenants {
		n += len(t.Tenant) + 6
	}
	return n
}

func compareKeys(a, b Key) int {
	if a.Limit != b.Limit {
		if a.Limit < b.Limit {
			return -1
		}
		return 1
	}
	switch {
	case a.Hash < b.Hash:
		return -1
	case a.Hash > b.Hash:
		return 1
	}
	return 0
}
