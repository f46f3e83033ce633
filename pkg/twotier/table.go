package twotier

import (
	"slices"
	"sync"
)

// overflowValue names the counter shared by all values beyond the bound.
const overflowValue = "\x00overflow"

// sweepStep is how many keys each new key looks at in search of idle ones. Two
// make the sweep faster than the growth, so idle keys do not pile up.
const sweepStep = 2

// A table holds the keys of one limiter: at most max of them. Values beyond that
// share one key, so a client that makes up values gets no budget by it.
type table struct {
	*index   // changed with mu held
	limiter  *Limiter
	overflow *Key

	mu   sync.Mutex // guards the rest
	max  int        // most keys
	ring []*Key     // all keys in the table
	hand int        // where the next sweep goes on
}

func (t *table) init(l *Limiter, maxKeys int) {
	t.index, t.limiter, t.max = newIndex(), l, maxKeys
	t.overflow = newKey(l, overflowValue)
}

// bound changes how many keys the table takes.
func (t *table) bound(maxKeys int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.max = maxKeys
}

// insert returns the key of the value, making it when there is room.
func (t *table) insert(value string) *Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(value); e != nil {
		return e.key
	}
	t.sweep()
	if len(t.ring) >= t.max || value == overflowValue {
		return t.overflow
	}
	k := newKey(t.limiter, value)
	t.ring = append(t.ring, k)
	t.add(k.lease.Load())
	return k
}

// update makes e the lease that is found for its value, if its key is in the
// table.
func (t *table) update(e *lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(e)
}

// sweep evicts idle keys among the next few; mu is held. Its cost does not grow
// with the table.
func (t *table) sweep() {
	now := t.limiter.clock.now()
	for range min(sweepStep, len(t.ring)) {
		t.hand %= len(t.ring)
		k := t.ring[t.hand]
		if !k.evict(now) {
			t.hand++
			continue
		}
		t.remove(k.value)
		last := len(t.ring) - 1
		t.ring[t.hand], t.ring[last] = t.ring[last], nil
		t.ring = t.ring[:last]
	}
}

func (t *table) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ring)
}

// each calls f for every key of the table and for the shared one.
func (t *table) each(f func(*Key)) {
	t.mu.Lock()
	keys := slices.Clone(t.ring)
	t.mu.Unlock()
	f(t.overflow)
	for _, k := range keys {
		f(k)
	}
}
