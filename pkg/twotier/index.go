package twotier

import (
	"hash/maphash"
	"sync/atomic"
)

// An index finds the lease of a value. It is a hash table with open addressing:
// whoever looks a value up takes no lock and touches one slot and one lease, so
// the cost is that of two cache misses however many values there are. Changes
// are made under the lock of the table that owns the index.
type index struct {
	seed  maphash.Seed
	slots atomic.Pointer[[]slot] // a power of two of them, at least an eighth of them free
	used  int                    // slots that are not free, those of deleted values included
	live  int                    // values
}

// A slot is free while lease is nil. Once taken it keeps its hash until the
// slots are replaced, so a reader never sees a hash beside a foreign lease.
type slot struct {
	hash  atomic.Uint64
	lease atomic.Pointer[lease]
}

// deleted takes the place of the lease of a value that was removed. No value is
// looked up as "".
var deleted = &lease{}

const fewestSlots = 16

func newIndex() *index {
	x := &index{seed: maphash.MakeSeed()}
	x.replace(fewestSlots)
	return x
}

// find returns the lease of the value, nil when there is none. The search ends
// because free slots remain.
func (x *index) find(value string) *lease {
	slots, hash := *x.slots.Load(), maphash.String(x.seed, value)
	for i := hash; ; i++ {
		s := &slots[i&uint64(len(slots)-1)]
		e := s.lease.Load()
		if e == nil {
			return nil
		}
		if s.hash.Load() == hash && e.value == value {
			return e
		}
	}
}

// set makes e the lease of e.value if the value is in the index.
func (x *index) set(e *lease) {
	if s := x.slotOf(e.value); s.lease.Load() != nil {
		s.lease.Store(e)
	}
}

// add puts a value into the index that is not in it.
func (x *index) add(e *lease) {
	if 8*(x.used+1) > 7*len(*x.slots.Load()) {
		x.replace(x.live + x.live/3)
	}
	s := x.slotOf(e.value)
	s.hash.Store(maphash.String(x.seed, e.value))
	s.lease.Store(e)
	x.used++
	x.live++
}

// remove takes a value out of the index that is in it.
func (x *index) remove(value string) {
	x.slotOf(value).lease.Store(deleted)
	x.live--
}

// slotOf returns the slot of the value, or the free slot where it belongs.
func (x *index) slotOf(value string) *slot {
	slots, hash := *x.slots.Load(), maphash.String(x.seed, value)
	for i := hash; ; i++ {
		s := &slots[i&uint64(len(slots)-1)]
		e := s.lease.Load()
		if e == nil || s.hash.Load() == hash && e.value == value {
			return s
		}
	}
}

// replace moves the values to new slots, at least want of them. Readers that
// still look at the old ones may find a lease that has been drained since; they
// miss and look again under a lock.
func (x *index) replace(want int) {
	n := fewestSlots
	for n < want {
		n *= 2
	}
	next := make([]slot, n)
	if old := x.slots.Load(); old != nil {
		for i := range *old {
			e := (*old)[i].lease.Load()
			if e == nil || e == deleted {
				continue
			}
			hash := (*old)[i].hash.Load()
			j := hash
			for next[j&uint64(n-1)].lease.Load() != nil {
				j++
			}
			next[j&uint64(n-1)].hash.Store(hash)
			next[j&uint64(n-1)].lease.Store(e)
		}
	}
	x.slots.Store(&next)
	x.used = x.live
}
