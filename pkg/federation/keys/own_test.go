package keys_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// overrides returns those of the values, ordered by hash.
func overrides(limits map[string]int64) []ledger.Override {
	var out []ledger.Override
	for value, limit := range limits {
		out = append(out, ledger.Override{Hash: store.HashValue(value), Limit: limit, Block: max(1, limit/10)})
	}
	slices.SortFunc(out, func(a, b ledger.Override) int { return cmp.Compare(a.Hash, b.Hash) })
	return out
}

// TestAValueHasTheLimitOfItsOverride, and what is withheld of every value is of it, too.
func TestAValueHasTheLimitOfItsOverride(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 1, Pool: 40, Withheld: 10, Overrides: overrides(map[string]int64{"more": 500, "fewer": 15, "none": 10})}
	for value, want := range map[string]int64{"more": 490, "fewer": 5, "none": 0, "other": 40} {
		a := ask(value, 1)
		a.Want = 1000
		if g := b.Take(w, a); g.Units != want || g.Remaining != 0 {
			t.Errorf("%s is granted %+v, want %d units and no rest", value, g, want)
		}
	}
}

// TestAValueWithAnOverrideIsCountedByItself although there is no room, and takes none from others.
func TestAValueWithAnOverrideIsCountedByItself(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 1, Pool: 10, Keys: 2, Overrides: overrides(map[string]int64{"more": 500, "late": 30})}
	for _, tc := range []struct {
		value string
		want  int64
	}{{"more", 500}, {"a", 10}, {"b", 10}, {"late", 30}, {"c", 10}, {"d", 0}} {
		a := ask(tc.value, 1)
		a.Want = 1000
		if g := b.Take(w, a); g.Units != tc.want {
			t.Errorf("%s is granted %+v, want %d units", tc.value, g, tc.want)
		}
	}
	if got, want := b.Room(), (keys.Room{Counters: 5, Full: true}); got != want {
		t.Errorf("%+v, want %+v: four values and one counter that the others share", got, want)
	}
}

// TestAWindowThatIsOpenKeepsTheSmallerLimitOfAValue, as it does that of all.
func TestAWindowThatIsOpenKeepsTheSmallerLimitOfAValue(t *testing.T) {
	with := func(limit int64) []ledger.Override { return overrides(map[string]int64{"x": limit, "y": 7}) }
	for name, tc := range map[string]struct {
		edits []([]ledger.Override)
		want  int64 // of the window of the edits
		next  int64 // of the next
	}{
		"raised":            {[][]ledger.Override{with(20), with(30)}, 20, 30},
		"lowered":           {[][]ledger.Override{with(30), with(20)}, 20, 20},
		"given, more":       {[][]ledger.Override{nil, with(30)}, 10, 30},
		"given, fewer":      {[][]ledger.Override{nil, with(5)}, 5, 5},
		"taken away, more":  {[][]ledger.Override{with(30), nil}, 10, 10},
		"taken away, fewer": {[][]ledger.Override{with(5), nil}, 5, 10},
		"there and back":    {[][]ledger.Override{with(30), with(20), with(40), with(30)}, 20, 30},
		"of another":        {[][]ledger.Override{with(30), slices.Clone(with(30))}, 30, 30},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			w := keys.Window{Index: 1, Pool: 10}
			for _, w.Overrides = range tc.edits {
				b.Take(w, ask("another", 1))
			}
			a := ask("x", 1)
			a.Want = 1000
			if g := b.Take(w, a); g.Units != tc.want {
				t.Errorf("%d units, want %d", g.Units, tc.want)
			}
			if w.Index++; b.Take(w, a).Units != tc.next {
				t.Errorf("another number of units in the next window, want %d", tc.next)
			}
		})
	}
}

// TestAValueStaysWhereItIsCounted when it is given an override: it would have its limit twice.
func TestAValueStaysWhereItIsCounted(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 1, Pool: 10, Keys: 1}
	b.Take(w, ask("own", 1))
	if g := b.Take(w, ask("x", 6)); g.Units != 6 {
		t.Fatalf("%+v, want 6 units of a shared counter", g)
	}
	w.Overrides = overrides(map[string]int64{"x": 500})
	a := ask("x", 1)
	a.Want = 1000
	if g := b.Take(w, a); g.Units != 4 {
		t.Errorf("%+v, want the rest of the counter that it shares, 4 units", g)
	}
	w.Index++
	b.Take(w, ask("own", 1))
	if g := b.Take(w, a); g.Units != 500 {
		t.Errorf("%+v in the next window, want all 500", g)
	}
}

// TestAValueThatSharesACounterHasTheSmallerLimit of its override and of all.
func TestAValueThatSharesACounterHasTheSmallerLimit(t *testing.T) {
	for name, tc := range map[string]struct{ own, all, want int64 }{
		"an override of fewer":         {4, 10, 4},
		"a limit of all that is fewer": {500, 7, 7},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			w := keys.Window{Index: 1, Pool: 10, Keys: 1}
			b.Take(w, ask("own", 1))
			w.Overrides = overrides(map[string]int64{"x": tc.own})
			b.Take(w, ask("own", 1))
			w.Pool = tc.all
			a := ask("x", 1)
			a.Want = 1000
			if g := b.Take(w, a); g.Units != tc.want {
				t.Errorf("%+v, want %d units", g, tc.want)
			}
		})
	}
}

// TestAnOverrideHasABlockOfItsOwn: a large limit would need very many writes by the block of all.
func TestAnOverrideHasABlockOfItsOwn(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 5, Pool: 10, Block: 1, Overrides: overrides(map[string]int64{"x": 500, "y": 0})}
	if g := b.Take(w, ask("x", 1)); !g.Lacks || g.Raise != 50 {
		t.Errorf("%+v, want that 50 units are to be set aside", g)
	}
	w.Overrides = slices.Clone(w.Overrides)
	for i := range w.Overrides {
		w.Overrides[i].Block = 0 // of a memory that is lost none may be granted ahead of the record
	}
	if g := b.Take(w, ask("x", 1)); !g.Lacks || g.Raise != 1 {
		t.Errorf("%+v, want that a unit is to be set aside", g)
	}
}

// TestNoValueHasMoreThanTheLargestOfItsLimits in one window, whatever is edited in it, where it is
// counted, and which memories follow each other. Without edits and with room it has all.
func TestNoValueHasMoreThanTheLargestOfItsLimits(t *testing.T) {
	const base = 20
	values := []string{"a", "b", "c", "d", "e", "f"}
	for seed := range uint64(3000) {
		dice := rand.New(rand.NewPCG(seed, 1))
		limits := map[string]int64{}
		had, most := map[string]int64{}, map[string]int64{}
		w := keys.Window{Index: 1, Pool: base, Block: int64(dice.IntN(4)), Keys: 1 + dice.Int64N(6)}
		edit := func() {
			if v := values[dice.IntN(3)]; dice.IntN(3) == 0 {
				delete(limits, v)
			} else {
				limits[v] = 1 + dice.Int64N(3*base)
			}
			w.Overrides = overrides(limits)
		}
		hold := func() {
			for _, v := range values {
				limit, ok := limits[v]
				if !ok {
					limit = base
				}
				most[v] = max(most[v], limit)
			}
		}
		edits, b := dice.IntN(2), newBook()
		edit()
		edit()
		hold()
		for range 200 {
			switch r := dice.IntN(40); {
			case r == 0 && edits > 0:
				edit()
				hold()
			case r == 1:
				next := newBook()
				next.State = keys.Succeed(b.Last())
				if w.Block > 0 && dice.IntN(2) == 0 {
					next.State = keys.Succeed(b.Saved)
				}
				b = next
			case r == 2 && dice.IntN(4) == 0:
				w.Index++
				clear(had)
				clear(most)
				hold()
			default:
				v := values[dice.IntN(len(values))]
				g := b.Take(w, ask(v, 1+dice.Int64N(5)))
				had[v] += g.Units
				if b.Due() && dice.IntN(2) == 0 {
					b.Saved = b.Next()
				}
				if had[v] > most[v] {
					t.Fatalf("seed %d: %s has %d of %d", seed, v, had[v], most[v])
				}
			}
		}
	}
}

// TestAMemoryThatFollowsHasTheRestOfALargeLimit: what was set aside of it counts, and no more.
func TestAMemoryThatFollowsHasTheRestOfALargeLimit(t *testing.T) {
	w := keys.Window{Index: 5, Pool: 10, Block: 1, Keys: 1, Overrides: overrides(map[string]int64{"x": 500})}
	for how, tc := range map[string]struct {
		change func(*keys.Book) keys.Aside
		want   int64
	}{
		"a crash":     {func(b *keys.Book) keys.Aside { return b.Saved }, 249}, // the first unit is of what is set aside of every value
		"a hand-over": {(*keys.Book).Last, 290},
	} {
		t.Run(how, func(t *testing.T) {
			first, second := newBook(), newBook()
			drain(first, w, "own", 1)
			if got := drain(first, w, "x", 210); got != 210 {
				t.Fatalf("%d units, want 210", got)
			}
			second.State = keys.Succeed(tc.change(first))
			if got := drain(second, w, "x", 1000); got != tc.want {
				t.Errorf("%d units of the memory that follows, want %d", got, tc.want)
			}
		})
	}
}
