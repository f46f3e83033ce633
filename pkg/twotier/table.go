package twotier

import (
	"sync"

	"github.com/puzpuzpuz/xsync/v4"
)

// overflowValue names the counter shared by all values beyond MaxKeys.
const overflowValue = "\x00overflow"

// sweepStep is how many keys each new key looks at in search of idle ones. Two
// make the sweep faster than the growth, so idle keys do not pile up.
const sweepStep = 2

// A table holds the keys of one limiter: at most max of them. Values beyond that
// share one key, so a client that makes up values gets no budget by it.
type table struct {
	limiter  *Limiter
	max      int
	keys     *xsync.Map[string, *Key]
	overflow *Key

	mu   sync.Mutex // guards the rest, and changes of keys
	ring []*Key     // all keys in the table
	hand int        // where the next sweep goes on
}

func (t *table) init(l *Limiter, maxKeys int) {
	t.limiter, t.max = l, maxKeys
	t.keys = xsync.NewMap[string, *Key](xsync.WithSerialResize())
	t.overflow = newKey(l, overflowValue)
}

// get returns the key of the value, making it when there is room.
func (t *table) get(value string) *Key {
	if k, ok := t.keys.Load(value); ok {
		return k
	}
	return t.insert(value)
}

func (t *table) insert(value string) *Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, ok := t.keys.Load(value); ok {
		return k
	}
	t.sweep()
	if len(t.ring) >= t.max {
		return t.overflow
	}
	k := newKey(t.limiter, value)
	t.ring = append(t.ring, k)
	t.keys.Store(value, k)
	return k
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
		t.keys.Delete(k.value)
		last := len(t.ring) - 1
		t.ring[t.hand], t.ring[last] = t.ring[last], nil
		t.ring = t.ring[:last]
	}
}

func (t *table) size() int { return t.keys.Size() }

// each calls f for every key of the table and for the shared one.
func (t *table) each(f func(*Key)) {
	f(t.overflow)
	t.keys.Range(func(_ string, k *Key) bool {
		f(k)
		return true
	})
}
