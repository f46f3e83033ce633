package count

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

// TestTalliesAreThoseOfAMap, of any number of keys, and stay where they are.
func TestTalliesAreThoseOfAMap(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 300, 2039, 2040, 2041, 3*mostChunk + 5000} {
		r := rand.New(rand.NewPCG(uint64(n), 3))
		var got tallies
		want, at := map[string]int64{}, map[string]*tally{}
		var order []string
		for range 3 * n {
			value := fmt.Sprint(r.IntN(n))
			key := got.get(value)
			if (key == nil) != (at[value] == nil) {
				t.Fatalf("%d keys: %q has %v, want %v", n, value, key, at[value])
			}
			if key == nil {
				key = got.add(value)
				at[value], order = key, append(order, value)
			}
			if key != at[value] {
				t.Fatalf("%d keys: the tally of %q has moved", n, value)
			}
			key.admitted++
			want[value]++
		}
		if got.n != len(want) || got.get("another") != nil {
			t.Errorf("%d keys are there, want %d", got.n, len(want))
		}
		i := 0
		for value, key := range got.all() {
			if i >= len(order) || value != order[i] || key != at[value] || key.admitted != want[value] {
				t.Fatalf("%d keys: number %d is %q with %d", n, i, value, key.admitted)
			}
			i++
		}
		if i != len(order) {
			t.Errorf("%d of %d keys were gone through", i, len(order))
		}
	}
}

// TestTalliesWhoseHashesAgreeAreKeptApart.
func TestTalliesWhoseHashesAgreeAreKeptApart(t *testing.T) {
	var l tallies
	a := l.add("a")
	for i := range l.slots { // the hash of "b" is that of "a" as well
		if l.slots[i] != 0 {
			l.slots[i] = 0
		}
	}
	l.enter(hashed(&l, "b") | 1)
	if l.get("b") != nil {
		t.Error("the tally of one key is another's")
	}
	if b := l.add("b"); b == a || l.get("b") != b {
		t.Error("a key behind another one of its hash is not found")
	}
}

func hashed(l *tallies, value string) uint64 { return maphash.String(l.seed, value) &^ (1<<32 - 1) }
