package twotier

import (
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// sweepStep is how many keys each new key looks at in search of idle ones, or more when
// the table is full, among sweepSlots slots at most. Two would make the sweep faster
// than the growth; as many again make up for keys that a sweep misses when the slots
// move.
const (
	sweepStep  = 4
	sweepSlots = 32
)

// evictionInterval is the least time between two evictions of keys that refuse. Each costs a
// store call when its value comes again, and a flood of refused values, more than there
// is room for, shall not become as many calls.
const evictionInterval = int64(10 * time.Millisecond)

// fullFor is how long a table counts as full after a value had to share a counter: reports and
// scrapes are rarer than such values.
const fullFor = int64(time.Minute)

// A KeysBound is what bounds how many values have credits of their own.
type KeysBound uint8

// The bounds.
const (
	NoBound      KeysBound = iota
	MaxKeysBound           // Config.MaxKeys
	MemoryBound            // Config.Memory
)

// String implements fmt.Stringer. It is empty for NoBound.
func (b KeysBound) String() string {
	switch b {
	case MaxKeysBound:
		return "maxKeys"
	case MemoryBound:
		return "memory"
	default:
		return ""
	}
}

// A table holds the keys of one limiter: at most max of them, and while the store is
// away as many more that keep the shares of values with tenants. Values beyond that share
// others, so a client that makes up values gets little budget by it.
type table struct {
	*index  // changed with mu held
	limiter *Limiter
	memory  usage

	mu           sync.Mutex // guards the rest
	max          int        // most keys
	cursor       int        // slot at which the next sweep goes on
	cursorSlots  int        // number of slots when the cursor was set
	nextEviction int64      // instant from which on a key that refuses may be evicted
	sharedCount  int        // of how many keys a value without one of its own shares one
	shared       []*Key     // these, nil where there is none yet; and those of more counts before
	full         KeysBound  // by which a value had no key of its own last
	fullAt       int64      // when; past when each had one
	short        bool       // there was no memory for a key last
}

func (t *table) init(l *Limiter, s *settings) {
	t.index, t.limiter, t.max, t.sharedCount, t.nextEviction = newIndex(), l, s.MaxKeys, s.SharedKeys, account.Past
	t.fullAt, t.memory.of = account.Past, s.Memory
}

// setBounds changes how many keys the table takes, and how many the others share.
func (t *table) setBounds(s *settings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.max, t.sharedCount = s.MaxKeys, s.SharedKeys
}

// insert returns the key of the value and tenant, making it when there is room.
func (t *table) insert(value, tenant string) *Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(value, tenant); e != nil {
		return e.key
	}
	t.sweep()
	switch {
	case store.IsShared(value):
		return t.sharedKey(value)
	case t.live >= t.max:
		return t.turnAway(value, MaxKeysBound)
	}
	return t.makeOrShare(value, tenant)
}

// look returns the key of the value and tenant, or one outside of the table that knows nothing
// when there is none, and reports whether that is one which values share. It changes nothing.
func (t *table) look(value, tenant string) (k *Key, shares bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(value, tenant); e != nil {
		return e.key, false
	}
	if !t.isFull() && !store.IsShared(value) {
		return newKey(t.limiter, nameOf(value, tenant), tenant != ""), false
	}
	i := store.Share(value, t.sharedCount)
	if i < len(t.shared) && t.shared[i] != nil {
		return t.shared[i], true
	}
	return newKey(t.limiter, store.Shared(i), false), true
}

// turnAway returns the key that the value shares because of the bound; mu is held.
func (t *table) turnAway(value string, by KeysBound) *Key {
	t.full, t.fullAt = by, t.limiter.clock.now()
	return t.sharedKey(value)
}

// sharedKey returns the key that the value shares with others; mu is held.
func (t *table) sharedKey(value string) *Key {
	i := store.Share(value, t.sharedCount)
	if i >= len(t.shared) {
		t.shared = append(t.shared, make([]*Key, t.sharedCount-len(t.shared))...)
	}
	if t.shared[i] == nil && i != 0 && !t.memory.take(bytesOf(store.Shared(i)), true) {
		i = 0 // the first stands in for it
	}
	if t.shared[i] == nil {
		t.shared[i] = newKey(t.limiter, store.Shared(i), false)
	}
	return t.shared[i]
}

// sharedFor returns the key that a value shares for which there is no memory.
func (t *table) sharedFor(value string) *Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turnAway(value, MemoryBound)
}

// counterKey returns the key of a value that has tenants, making it whether or not there are too
// many: the share of the value is kept at it, and charged nowhere else. Pairs come only
// while there is room beside these, so there is at most one for each pair of a full table.
func (t *table) counterKey(value string) *Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(value, ""); e != nil {
		return e.key
	}
	t.sweep()
	return t.makeOrShare(value, "")
}

// makeOrShare adds the key of the value and tenant, which the table does not have, or returns
// the one that the value shares where there is no memory; mu is held.
func (t *table) makeOrShare(value, tenant string) *Key {
	name := nameOf(value, tenant)
	if t.short = !t.memory.take(bytesOf(name), false); t.short {
		return t.turnAway(value, MemoryBound)
	}
	k := newKey(t.limiter, name, tenant != "")
	t.add(k.lease.Load())
	return k
}

// drop takes an evicted key out of the table; mu is held.
func (t *table) drop(e *lease) {
	t.remove(e)
	t.memory.give(bytesOf(e.name))
}

// isFull reports whether another key needs the place of one that is there; mu is held.
func (t *table) isFull() bool { return t.live >= t.max || t.short }

// bytesOf returns what a key of the name takes.
func bytesOf(name string) int64 { return keyBytes + int64(len(name)) }

// update makes e the lease that is found for its value, if its key is in the
// table.
func (t *table) update(e *lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(e)
}

// sweep evicts useless keys among the next few, and if the table or the memory is full all the
// same, the one of least use that is not needed; mu is held. Its cost does not grow
// with the table: at least a fifth of the slots are free, and when most are, few
// keys are there to be looked for.
func (t *table) sweep() {
	now := t.limiter.clock.now()
	var least *Key // of those that are left
	leastUse := needed
	slots := *t.slots.Load()
	if t.cursorSlots != len(slots) { // the keys kept their order when they moved
		t.cursor = t.cursor * len(slots) / max(t.cursorSlots, 1)
		t.cursorSlots = len(slots)
	}
	looked := 0
	for range sweepSlots {
		if looked >= sweepStep && (!t.isFull() || leastUse <= spent) {
			break
		}
		if t.cursor++; t.cursor >= len(slots) {
			t.cursor = 0
		}
		e := slots[t.cursor].lease.Load()
		if e == nil || e == deleted {
			continue
		}
		looked++
		if e.held(now) > 0 {
			continue // it is needed, as the lease says without its key
		}
		switch is := e.key.evict(now, useless); {
		case is == useless:
			t.drop(e)
		case is < leastUse:
			least, leastUse = e.key, is
		}
	}
	if t.isFull() && (leastUse == spent || leastUse == refusing && now >= t.nextEviction) {
		t.displace(least, leastUse, now)
	}
}

// displace evicts a key for another one unless it is of more use by now; mu is held.
func (t *table) displace(k *Key, most use, now int64) {
	if k.evict(now, most) > most {
		return
	}
	t.drop(k.lease.Load())
	if most == refusing {
		t.nextEviction = now + evictionInterval
	}
}

func (t *table) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// fullBy returns the bound by which a value had to share a counter of late.
func (t *table) fullBy(now int64) KeysBound {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fullAt == account.Past || now-t.fullAt >= fullFor {
		return NoBound
	}
	return t.full
}

// each calls f for every key of the table and for those that values share. Keys that
// come or go meanwhile may be left out.
func (t *table) each(f func(*Key)) {
	t.mu.Lock()
	shared := slices.Clone(t.shared)
	t.mu.Unlock()
	for _, k := range shared {
		if k != nil {
			f(k)
		}
	}
	slots := *t.slots.Load()
	for i := range slots {
		if e := slots[i].lease.Load(); e != nil && e != deleted {
			f(e.key)
		}
	}
}
