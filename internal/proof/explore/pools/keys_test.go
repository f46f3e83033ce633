package pools_test

import (
	"errors"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// byKey is what a holder has in flight of each key.
type byKey [2]int64

// keyNames are the keys'.
var keyNames = [len(byKey{})]string{"gold", "free"}

// count returns the production code's count.
func (of byKey) count() *slots.Keys {
	k := slots.NewKeys()
	for key, n := range of {
		for range n {
			k.Admit(keyNames[key], n)
		}
	}
	return k
}

func (of byKey) plus(other byKey) byKey {
	for key, n := range other {
		of[key] += n
	}
	return of
}

func (of byKey) most() int64 { return max(of[0], of[1]) }

// workByKey lets requests of each key come and go.
func (f *fleet) workByKey(w world, n int, emit emitter) {
	h := w.holders[n]
	for key := range f.keys {
		if h.up && h.of.count().Admit(keyNames[key], f.held(&w, n)) {
			v := w
			v.holders[n].move(key, 1)
			emit(event{"admits a request of " + keyNames[key], n, silent}, v)
		}
		if h.of[key] > 0 {
			v := w
			v.holders[n].move(key, -1)
			emit(event{"finishes one of " + keyNames[key], n, silent}, v)
		}
	}
}

func (h *holder) move(key int, by int64) {
	h.of[key] += by
	h.inflight = h.of.most()
	h.peak, h.since = max(h.peak, h.inflight), max(h.since, h.inflight)
}

// keyed returns a fleet whose limit is of every key.
func keyed(change func(*fleet), limit, ttl int64) *fleet {
	return fleetOf(func(f *fleet) {
		f.keys = len(byKey{})
		change(f)
	}, poolOf(limit, ttl))
}

// modelsByKey have to keep the promise for every key.
func modelsByKey() []model {
	return []model{
		{"a limit per key, beats that take no time", 3, keyed(func(*fleet) {}, 2, 2)},
		{"a limit per key, late and lost beats", 5, keyed(func(f *fleet) { f.late = 2 }, 2, 1)},
		{"a limit per key, beats that arrive again", 3, keyed(func(f *fleet) { f.late, f.strays = 1, true }, 2, 1)},
		{"a limit per key, holders that leave", 3, keyed(func(f *fleet) { f.late, f.leaves, f.starts = 1, true, 1 }, 2, 1)},
		{"a limit per key, the coordinator forgets", 3, keyed(func(f *fleet) { f.late, f.forgets = 1, 1 }, 2, 1)},
		{"a limit per key, another leader takes over", 3, keyed(func(f *fleet) { f.late, f.moves = 1, 1 }, 2, 1)},
	}
}

// weakenedByKey are weakenings of what holders do where the limit is of every key.
func weakenedByKey() []weakening {
	without := func(fullest func(byKey) int64) *fleet {
		f := keyed(func(*fleet) {}, 2, 2)
		f.loose, f.rules.fullest = true, fullest
		return f
	}
	return []weakening{
		{"a holder reports the key that has the most in flight, not the least", 8, without(func(of byKey) int64 { return min(of[0], of[1]) })},
		{"a holder reports the key that has the most in flight, not one of them", 8, without(func(of byKey) int64 { return of[0] })},
	}
}

var errBoth = errors.New("the limit is in flight of both keys")

// TestTheLimitIsOfEveryKeyAlone refutes that all keys together have the limit.
func TestTheLimitIsOfEveryKeyAlone(t *testing.T) {
	m := keyed(func(*fleet) {}, 2, 2).model()
	check := m.Check
	m.Check = func(w world) error {
		if h := w.holders[0].of.plus(w.holders[1].of); h[0]+h[1] == 4 {
			return errBoth
		}
		return check(w)
	}
	r, err := explore.Search(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Counterexample; c == nil || !errors.Is(c.Broken, errBoth) {
		t.Errorf("found %v, want a history with the limit in flight of both keys", c)
	}
}
