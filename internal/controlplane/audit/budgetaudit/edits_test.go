package budgetaudit

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

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
