package keys_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

func newBook() *keys.Book { return &keys.Book{Share: store.SharedHashOf} }

// ask returns an ask for exactly that many units of a value.
func ask(value string, units int64) keys.KeyAsk {
	return keys.KeyAsk{Hash: store.HashValue(value), Ask: keys.Ask{Min: units, Want: units}}
}

// TestValuesThatAreTooManyShareCounters: there is one for each 8 that are counted by
// themselves.
func TestValuesThatAreTooManyShareCounters(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 1, Pool: 10, Keys: 16}
	for i := range 16 {
		if g := b.Take(w, ask(fmt.Sprint("own", i), 10)); g.Units != 10 {
			t.Fatalf("value %d is granted %d units, want all 10", i, g.Units)
		}
	}
	var sum int64
	for i := range 100 {
		sum += b.Take(w, ask(fmt.Sprint("more", i), 1)).Units
	}
	if sum != 20 || b.Room().Counters != 18 {
		t.Errorf("%d units of 100 values more in %d counters, want 20 in 18", sum, b.Room().Counters)
	}
	if g := b.Take(w, ask("own1", 1)); g.Units != 0 {
		t.Error("a value that has a counter of its own is granted units of another")
	}
	if w.Index++; b.Take(w, ask("more1", 10)).Units != 10 || b.Room().Counters != 1 {
		t.Errorf("%d counters in the next window, want 1 with a whole limit", b.Room().Counters)
	}
}

func TestABookIsOfOneWindow(t *testing.T) {
	b := newBook()
	w := keys.Window{Length: limiter.Second, Index: 5, Pool: 10}
	b.Take(w, ask("x", 10))
	if w.Index--; b.Take(w, ask("y", 1)) != (keys.Grant{}) {
		t.Error("units of a window before are granted")
	}
	if w.Index++; b.Take(w, ask("x", 1)).Units != 0 {
		t.Error("what was granted of the window is forgotten")
	}
	w.Length, w.Index = 2*limiter.Second, 2
	if b.Take(w, ask("x", 10)).Units != 10 {
		t.Error("nothing is granted of a window of another length")
	}
}

func TestABookSetsAsideWhatIsWanted(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 5, Pool: 100, Block: 10}
	group := keys.GroupOf(store.HashValue("x"))
	if g := b.Take(w, ask("x", 30)); !g.Lacks || !b.Due() {
		t.Fatalf("%+v, want that it has to be set aside", g)
	}
	b.Saved = b.Next()
	want := keys.Aside{Index: 5, Base: 10, Marks: []keys.Mark{{Group: group, Units: 30}}}
	if diff := cmp.Diff(want, b.Saved); diff != "" || b.Due() {
		t.Errorf("due %v, %s", b.Due(), diff)
	}
	if g := b.Take(w, ask("x", 25)); g.Units != 25 {
		t.Errorf("%+v, want 25 units", g)
	}
	want = keys.Aside{Index: 5, Marks: []keys.Mark{{Group: group, Units: 25}}}
	if diff := cmp.Diff(want, b.Last()); diff != "" {
		t.Error(diff)
	}
}

// TestAKeyHasItsLimitOnceWhereverItIsCounted: a memory counts a key by itself that the one
// before counted together with others, and the other way round.
func TestAKeyHasItsLimitOnceWhereverItIsCounted(t *testing.T) {
	const limit = 100
	w := keys.Window{Index: 5, Pool: limit, Block: 10, Keys: 1}
	for how, change := range map[string]func(*keys.Book) keys.Aside{
		"a crash":     func(b *keys.Book) keys.Aside { return b.Saved },
		"a hand-over": (*keys.Book).Last,
	} {
		for _, c := range []struct{ own, shared int64 }{{limit, 1}, {1, limit}, {limit, limit}} {
			t.Run(fmt.Sprintf("%s after %d and %d", how, c.own, c.shared), func(t *testing.T) {
				first, second := newBook(), newBook()
				own, shared := drain(first, w, "own", c.own), drain(first, w, "shared", c.shared)
				record := change(first)
				if own != c.own || shared != c.shared || record.Shared != 1 {
					t.Fatalf("%d and %d units, %+v, want one counter that keys share", own, shared, record)
				}
				second.State = keys.Succeed(record)
				shared += drain(second, w, "shared", limit)
				own += drain(second, w, "own", limit)
				if own > limit || shared > limit {
					t.Errorf("%d and %d units of %d", own, shared, limit)
				}
			})
		}
	}
}

// drain takes up to most units of a key one by one, and writes what is wanted.
func drain(b *keys.Book, w keys.Window, value string, most int64) (sum int64) {
	for sum < most {
		g := b.Take(w, ask(value, 1))
		sum += g.Units
		switch {
		case g.Lacks:
			b.Saved = b.Next()
		case g.Units == 0:
			return sum
		}
	}
	return sum
}

// TestNoCounterIsSharedBeforeTheRecordSaysSo: otherwise the memory that follows would not know.
func TestNoCounterIsSharedBeforeTheRecordSaysSo(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 5, Pool: 100, Block: 10, Keys: 16}
	b.Saved = keys.Aside{Index: 5, Base: 10}
	for i := range 16 {
		b.Take(w, ask(fmt.Sprint("own", i), 1))
	}
	if g := b.Take(w, ask("x", 1)); !g.Lacks || !b.Due() {
		t.Fatalf("%+v, want that it has to be written first", g)
	}
	if b.Saved = b.Next(); b.Saved.Shared != 2 {
		t.Fatalf("%+v, want two counters that keys share", b.Saved)
	}
	if g := b.Take(w, ask("x", 1)); g.Units != 1 {
		t.Errorf("%+v, want a unit", g)
	}
	if w.Index++; b.Take(w, ask("own1", 1)).Units != 0 || b.Next().Shared != 0 {
		t.Error("keys share counters of the window after")
	}
}

// TestMoreKeysAreCountedByThemselvesFromTheNextWindowOn: one that got a counter of its own in
// the open window would have its limit twice.
func TestMoreKeysAreCountedByThemselvesFromTheNextWindowOn(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 5, Pool: 10, Keys: 1}
	b.Take(w, ask("own", 1))
	if g := b.Take(w, ask("x", 10)); g.Units != 10 {
		t.Fatalf("%+v, want all", g)
	}
	w.Keys, w.Pool = 100, 12
	if g := b.Take(w, ask("x", 10)); g.Units != 0 || g.Remaining != 2 {
		t.Errorf("%+v, want that 2 units are left of the new limit", g)
	}
	w.Index++
	b.Take(w, ask("own", 1))
	if b.Take(w, ask("x", 12)); b.Room() != (keys.Room{Counters: 2}) {
		t.Errorf("%+v in the next window", b.Room())
	}
}

// TestAMemoryThatGrantedNothingHandsOverWhatItBeganWith: what those before granted of the open
// window counts for the next one as well.
func TestAMemoryThatGrantedNothingHandsOverWhatItBeganWith(t *testing.T) {
	b := newBook()
	b.State = keys.Succeed(aside)
	if diff := cmp.Diff(aside, b.Last()); diff != "" {
		t.Error(diff)
	}
}
