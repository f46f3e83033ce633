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
