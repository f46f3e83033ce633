package budgetaudit

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestManyEditsOfAWindowAreOneVersion: a window may be long, and its overrides others every second.
// The largest limit counts all the same.
func TestManyEditsOfAWindowAreOneVersion(t *testing.T) {
	const hour = limiter.Instant(3600 * budgetSecond)
	with := func(x, y int64) []ledger.Override {
		return []ledger.Override{{Hash: "x", Limit: x}, {Hash: "y", Limit: y}}
	}
	v := NewValues(limiter.Micros(hour), 0)
	v.List([]string{"a"}, 0)
	v.Override(with(10, 10), 0)
	v.Override(with(10, 10), hour+9*limiter.Instant(budgetSecond))
	for i := range int64(1000) { // in the second hour; x has the limit of all for a while
		held := with(10, 20+i%7)
		if i == 500 {
			held = held[1:]
		}
		v.Override(held, hour+limiter.Instant((10+i)*budgetSecond))
	}
	v.Override(with(10, 24), 2*hour+10*limiter.Instant(budgetSecond))
	if n := len(v.held); n > 5 {
		t.Errorf("%d versions are remembered", n)
	}
	for index, limits := range [][2]int64{{10, 10}, {90, 26}, {10, 25}} {
		for _, over := range [][2]int64{{0, 0}, {1, 0}, {1, 2}} {
			r := valued(0, of("x", limits[0]+over[0], 0), of("y", limits[1]+over[1], 0))
			r.Index = int64(index)
			v.Enter("a", r, 5*hour)
			if o := v.Outcomes()[index]; !o.Measured || o.Over != max(over[0], over[1]) {
				t.Errorf("%+v, want %d beyond %d", o, over, limits)
			}
		}
	}
}

// TestAWindowWithTooManyOverridesIsNotMeasured, and the next one is.
func TestAWindowWithTooManyOverridesIsNotMeasured(t *testing.T) {
	const hour = limiter.Instant(3600 * budgetSecond)
	v := NewValues(limiter.Micros(hour), 0)
	v.List([]string{"a"}, 0)
	for i := range int64(100) {
		var held []ledger.Override
		for n := range int64(ledger.MaxOverrides) {
			held = append(held, ledger.Override{Hash: fmt.Sprintf("%d/%04d", i, n), Limit: 1})
		}
		v.Override(held, hour+limiter.Instant((10+i)*budgetSecond))
	}
	held := 0
	for _, o := range v.held {
		held += len(o.overrides)
	}
	if held > 2*maxOverridden {
		t.Errorf("%d overrides are remembered", held)
	}
	for index := range int64(3) {
		r := valued(0)
		r.Index = index
		v.Enter("a", r, 5*hour)
	}
	if o := v.Outcomes(); len(o) != 1 || o[0].Index != 2 {
		t.Errorf("%+v, want that the third window alone is measured", o)
	}
}

// TestAnEditLeavesOldWindowsAsTheyWere, also when nothing was counted for a long time before it.
func TestAnEditLeavesOldWindowsAsTheyWere(t *testing.T) {
	at := func(second int64) limiter.Instant { return limiter.Instant(second * budgetSecond) }
	v := NewValues(limiter.Second, 0)
	v.Override([]ledger.Override{{Hash: "x", Limit: 500}}, 0)
	v.List([]string{"a"}, at(valueWindowIndex))
	row := valued(0, of("x", 400, 0))
	v.Enter("a", row, at(10))
	v.Override([]ledger.Override{{Hash: "x", Limit: 500}}, at(99))
	v.Override(nil, at(100))
	for i := range int64(100) {
		v.Override([]ledger.Override{{Hash: "y", Limit: i + 1}}, at(200+i))
	}
	row.Refused++ // a late report has it looked at again
	v.Enter("a", row, at(300))
	if o := v.Outcomes()[0]; o.Over != 0 {
		t.Errorf("%+v, want no value beyond its limit of 500", o)
	}
	if n := len(v.held); n > maxValueRows+10 {
		t.Errorf("%d versions are remembered", n)
	}
}

// TestAnEditIsOfTheWindowsSinceNobodyLooked, whatever was said of them.
func TestAnEditIsOfTheWindowsSinceNobodyLooked(t *testing.T) {
	with := func(limit int64) []ledger.Override { return []ledger.Override{{Hash: "x", Limit: limit}} }
	v := NewValues(limiter.Second, 0)
	v.Override(with(10), 0)
	v.Enter("a", valued(0, of("x", 60, 0)), 10*limiter.Instant(budgetSecond))
	before := v.Outcomes()[0].Over
	v.Override(with(40), 10*limiter.Instant(budgetSecond))
	if after := v.Outcomes()[0].Over; before != 50 || after != 20 {
		t.Errorf("%d units beyond a limit of 10 and %d beyond 40, want 50 and 20", before, after)
	}
}
