package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// sliced returns a budget of 100 in which a keeps 50 and b 20 of each window.
func sliced() ledger.Params {
	p := budget(100, members("a", "b"))
	p.Slices = true
	p.Members[0].Nominal, p.Members[0].Kept = 60, 50
	p.Members[1].Nominal, p.Members[1].Kept = 40, 20
	return p
}

func TestSlicesAreCountedBeforeAnybodyIsHeardOf(t *testing.T) {
	w := newScript(t, sliced())
	g := w.at(0, "a", lease(1, 100))
	if g.Slice != 50 || g.NowSlice != 50 || g.Granted+g.Remaining != 30 {
		t.Errorf("%+v, want a slice of 50 and 30 beside both", g)
	}
	if all := w.state.Allocation(w.params); all.Granted != 70+g.Granted {
		t.Errorf("%+v given away, want both slices and %d", all, g.Granted)
	}
}

func TestASliceShrinksWhenItsMemberKnows(t *testing.T) {
	w := newScript(t, sliced())
	c := lease(1, 1)
	g := w.at(0, "a", c)
	w.at(0, "b", lease(1, 1))
	w.params.Members[0].Nominal, w.params.Members[0].Kept = 10, 10
	w.params.Members[1].Nominal, w.params.Members[1].Kept = 80, 80

	old := c // a repetition that is on its way all the time: it was sent before a heard 50
	c.Slice, c = g.Slice, following(c, g)
	g = w.at(1, "a", c)
	slice(t, w, g, 10, 50)
	c.Slice, c = g.Slice, following(c, g)
	g = w.at(limiter.Second, "a", c)
	slice(t, w, g, 10, 50)
	old.Holder = "a-repeated"
	slice(t, w, w.at(limiter.Second, "a", old), 10, 50)
	slice(t, w, w.at(limiter.Second, "b", lease(1, 1)), 50, 20) // what there is beside 50

	c.Slice, c = g.Slice, following(c, g)
	g = w.at(limiter.Second+1, "a", c) // sent after the answer of the second window
	slice(t, w, g, 10, 50)
	slice(t, w, w.at(2*limiter.Second, "b", lease(1, 1)), 80, 50)
	slice(t, w, w.at(2*limiter.Second, "a", lease(1, 1)), 10, 10)
}

// slice checks what a member is sent, and what it may use now at most.
func slice(t *testing.T, w *script, g ledger.Grant, next, now int64) {
	t.Helper()
	if g.Slice > next || g.NowSlice > now {
		t.Errorf("sent %d and %d now, want at most %d and %d", g.Slice, g.NowSlice, next, now)
	}
	var sum, later int64
	for _, s := range w.state.Standings {
		sum, later = sum+s.Slice, later+s.Next
	}
	if sum > 100 || later > 100 {
		t.Errorf("slices of %d now and %d later exceed the limit: %+v", sum, later, w.state.Standings)
	}
}

// TestSlicesFitIntoTheSmallestLimitOfAValue while they change hands: they are used of that value, too.
func TestSlicesFitIntoTheSmallestLimitOfAValue(t *testing.T) {
	fits := func(w *script, when string) {
		t.Helper()
		var sum, later int64
		for _, s := range w.state.Standings {
			sum, later = sum+s.Slice, later+s.Next
		}
		if sum > 80 || later > 80 {
			t.Errorf("%s: slices of %d now and %d later exceed 80: %+v", when, sum, later, w.state.Standings)
		}
	}
	for _, moved := range []string{"to b", "to c"} {
		w := newScript(t, sliced())
		w.params.Keys, w.params.Overrides = 10, []ledger.Override{{Hash: "x", Limit: 80}, {Hash: "y", Limit: 90}}
		w.at(0, "a", ledger.Command{Op: ledger.Report})
		w.at(0, "b", ledger.Command{Op: ledger.Report})
		w.params.Members = members("a", "b", "c") // a is cut off
		w.params.Members[1].Nominal, w.params.Members[1].Kept = 20, 20
		if taker := w.params.Members[1:]; moved == "to b" {
			taker[0].Nominal, taker[0].Kept = 70, 70
		} else {
			taker[1].Nominal, taker[1].Kept = 50, 50
		}
		for window := range limiter.Micros(3) {
			w.at(window*limiter.Second, "b", ledger.Command{Op: ledger.Report})
			w.at(window*limiter.Second, "c", ledger.Command{Op: ledger.Report})
			fits(w, moved)
		}
	}
}

func TestAMemberThatWasRemovedGivesItsSliceUp(t *testing.T) {
	w := newScript(t, sliced())
	g := w.at(0, "a", lease(1, 1))
	w.params.Members = w.params.Members[1:]
	c := following(lease(1, 1), g)
	for window := range limiter.Micros(3) {
		c.Slice = g.Slice
		if g = w.at(window*limiter.Second, "a", c); g.Reason != ledger.Unknown || g.Slice != 0 {
			t.Errorf("window %d: %+v", window, g)
		}
		c.Epoch = g.Epoch
	}
	for window := range limiter.Micros(2) {
		c.Slice = 0
		w.at((3+window)*limiter.Second, "a", c)
	}
	w.at(6*limiter.Second, "b", lease(1, 1))
	if s, known := w.state.StandingOf("a"); known {
		t.Errorf("%+v is left of a member that gave all up", s)
	}
}

func TestReleaseIsOncePerHolderAndWindow(t *testing.T) {
	w := newScript(t, budget(100, members("a", "b")))
	g := w.at(0, "a", lease(40, 40))
	c := following(ledger.Command{Op: ledger.Release, Seq: 7}, g)
	c.Granted = 10
	expect(t, w.at(0, "a", c), ledger.Granted, 10)
	expect(t, w.at(0, "a", c), ledger.Stale, 10)
	c.Seq, c.Granted = 8, 30
	expect(t, w.at(0, "a", c), ledger.Granted, 10)
	w.seq = 8
	if g := w.at(0, "b", lease(90, 90)); g.Granted != 90 {
		t.Errorf("what was given back is not there for others: %+v", g)
	}
	c.Seq, c.Granted = 20, 0
	expect(t, w.at(limiter.Second, "a", c), ledger.Forfeited, 0)
}

func TestReportsSayWhatWasAdmitted(t *testing.T) {
	w := newScript(t, budget(10, members("a", "b")))
	g := w.at(0, "a", lease(4, 4))
	w.at(0, "b", lease(1, 1))
	report := func(m string, admitted, refused int64, complete bool) {
		w.at(limiter.Second, m, ledger.Command{Op: ledger.Report, Usage: []ledger.Usage{
			{Index: g.Epoch.Index, Admitted: admitted, Refused: refused, Complete: complete},
			{Index: g.Epoch.Index + 1, Admitted: 100}, // is not over
		}})
	}
	report("a", 4, 3, false)
	check := func(overshoot, unused int64, sure bool) {
		t.Helper()
		last := w.state.Closed[0]
		over, a := last.Overshoot()
		left, b := last.Unused()
		if over != overshoot || left != unused || a != sure || b != sure {
			t.Errorf("Δ %d (%v), U %d (%v), want %d and %d (%v): %+v", over, a, left, b, overshoot, unused, sure, last)
		}
	}
	check(0, 3, false)
	report("a", 7, 3, true)
	check(0, 3, false)
	report("a", 1, 0, false) // was sent before
	report("b", 5, 0, true)
	check(2, 0, true)
	if n := len(w.state.Closed); n != 1 {
		t.Errorf("%d windows are over, want 1", n)
	}
}

func TestInvalid(t *testing.T) {
	for field, change := range map[string]func(*ledger.Params, *ledger.Command){
		"limit":             func(p *ledger.Params, _ *ledger.Command) { p.Limit = 0 },
		"window":            func(p *ledger.Params, _ *ledger.Command) { p.Window = 1 },
		"strategy":          func(p *ledger.Params, _ *ledger.Command) { p.Strategy = 9 },
		"block":             func(p *ledger.Params, _ *ledger.Command) { p.Block = -1 },
		"members":           func(p *ledger.Params, _ *ledger.Command) { p.Members[0].Nominal, p.Members[1].Nominal = 60, 60 },
		"members[1].name":   func(p *ledger.Params, _ *ledger.Command) { p.Members[1].Name = "a" },
		"members[0].weight": func(p *ledger.Params, _ *ledger.Command) { p.Members[0].Weight = 0 },
		"members[0].kept":   func(p *ledger.Params, _ *ledger.Command) { p.Members[0].Kept = 61 },
		"op":                func(_ *ledger.Params, c *ledger.Command) { c.Op = 9 },
		"memory.term":       func(_ *ledger.Params, c *ledger.Command) { c.Memory.Term = 0 },
		"holder":            func(_ *ledger.Params, c *ledger.Command) { c.Holder = strings.Repeat("x", 300) },
		"epoch.term":        func(_ *ledger.Params, c *ledger.Command) { c.Op = ledger.Reserve },
		"min":               func(_ *ledger.Params, c *ledger.Command) { c.Min = 0 },
		"weight":            func(_ *ledger.Params, c *ledger.Command) { c.Weight = ledger.MaxClaim + 1 },
		"usage[1].index": func(_ *ledger.Params, c *ledger.Command) {
			c.Op, c.Usage = ledger.Report, []ledger.Usage{{Index: 1}, {Index: 1}}
		},
	} {
		p, c := sliced(), lease(1, 1)
		c.Member, c.Holder, c.Seq, c.Memory.Term = "a", "h", 1, 1
		change(&p, &c)
		var bad *ledger.InvalidError
		if err := errors.Join(p.Validate(), c.Validate()); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
