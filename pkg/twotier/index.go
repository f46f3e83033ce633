package twotier

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// An index finds the lease of a value and tenant. It is a hash table with open addressing.
// A lookup takes no lock and touches one slot and one lease, so it costs two cache misses
// for any number of keys. Changes are made under the lock of the table that owns the
// index.
type index struct {
	seed  maphash.Seed
	slots atomic.Pointer[[]slot] // at least a fifth of them free
	used  int                    // slots that are not free, those of deleted keys included
	live  int                    // keys
}

// A slot is free while lease is nil. Once taken it keeps its hash until the
// slots are replaced, so a reader never sees a hash beside a foreign lease.
type slot struct {
	hash  atomic.Uint64
	lease atomic.Pointer[lease]
}

// deleted takes the place of the lease of a key that was removed. No value is
// looked up as "" without a tenant, and no name of a value with one is as short.
var deleted = &lease{}

const fewestSlots = 16

func newIndex() *index {
	x := &index{seed: maphash.MakeSeed()}
	x.replace(fewestSlots)
	return x
}

// find returns the lease of the value and tenant, nil when there is none. The
// search ends because free slots remain.
func (x *index) find(value, tenant string) *lease {
	slots := *x.slots.Load()
	hash := maphash.String(x.seed, value) &^ 1
	if tenant != "" {
		hash = x.hash(value, tenant)
	}
	for i := startSlot(hash, len(slots)); ; i++ {
		if i >= len(slots) {
			i = 0
		}
		s := &slots[i]
		e := s.lease.Load()
		if e == nil {
			return nil
		}
		if s.hash.Load() == hash && matches(e.name, value, tenant) {
			return e
		}
	}
}

// hash returns the hash of a value and a tenant, which is odd exactly if there is
// a tenant: so a name is never taken for one of the other kind.
func (x *index) hash(value, tenant string) uint64 {
	if tenant == "" {
		return maphash.String(x.seed, value) &^ 1
	}
	return (bits.RotateLeft64(maphash.String(x.seed, value), 1) ^ maphash.String(x.seed, tenant)) | 1
}

// startSlot returns where the search for a hash begins among n slots: the hash, scaled
// (Lemire, "Fast Random Integer Generation in an Interval").
func startSlot(hash uint64, n int) int {
	high, _ := bits.Mul64(hash, uint64(n))
	return int(high)
}

// matches reports whether the name is that of a value and a tenant. The caller knows by
// the hash that it is of that kind.
func matches(name, value, tenant string) bool {
	if tenant == "" {
		return name == value
	}
	return isNamed(name, value, tenant)
}

// set makes e the lease of its key if the key is in the index.
func (x *index) set(e *lease) {
	if s, _ := x.slotOf(e); s.lease.Load() != nil {
		s.lease.Store(e)
	}
}

// add puts a key into the index that is not in it.
func (x *index) add(e *lease) {
	if 5*(x.used+1) > 4*len(*x.slots.Load()) {
		x.replace(15 * x.live / 8)
	}
	s, hash := x.slotOf(e)
	s.hash.Store(hash)
	s.lease.Store(e)
	x.used++
	x.live++
}

// remove takes a key out of the index that is in it.
func (x *index) remove(e *lease) {
	s, _ := x.slotOf(e)
	s.lease.Store(deleted)
	x.live--
}

// slotOf returns the slot of the key, or the free slot where it belongs, and its
// hash.
func (x *index) slotOf(e *lease) (*slot, uint64) {
	slots := *x.slots.Load()
	value, tenant := split(e.name, e.key.tenanted)
	hash := x.hash(value, tenant)
	for i := startSlot(hash, len(slots)); ; i++ {
		if i == len(slots) {
			i = 0
		}
		s := &slots[i]
		found := s.lease.Load()
		if found == nil || s.hash.Load() == hash && matches(found.name, value, tenant) {
			return s, hash
		}
	}
}

// replace moves the keys to new slots, at least want of them. Readers that still
// look at the old ones may find a lease that has been drained since; they miss and
// look again under a lock.
func (x *index) replace(want int) {
	next := make([]slot, max(want, fewestSlots))
	if old := x.slots.Load(); old != nil {
		for i := range *old {
			e := (*old)[i].lease.Load()
			if e == nil || e == deleted {
				continue
			}
			hash := (*old)[i].hash.Load()
			j := startSlot(hash, len(next))
			for next[j].lease.Load() != nil {
				if j++; j == len(next) {
					j = 0
				}
			}
			next[j].hash.Store(hash)
			next[j].lease.Store(e)
		}
	}
	x.slots.Store(&next)
	x.used = x.live
}
