package ledger_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// all asks until no more is granted, and returns the total.
func all(w *script, after limiter.Micros, m string) int64 {
	var g ledger.Grant
	for {
		next := w.at(after, m, following(lease(1, 100), g))
		if next.Granted == g.Granted {
			return g.Granted
		}
		g = next
	}
}

func TestTheStrategyDecidesTheGrantOfAMember(t *testing.T) {
	for name, c := range map[string]struct {
		strategy ledger.Strategy
		a, b     ledger.Member
		before   int64 // that b wanted of the window before
		want     int64
	}{
		"all, when nobody else asked":            {ledger.FairShare, ledger.Member{Borrowing: -1}, ledger.Member{Borrowing: -1}, 0, 100},
		"what others wanted before is kept":      {ledger.FairShare, ledger.Member{Borrowing: -1}, ledger.Member{Borrowing: -1}, 30, 70},
		"up to their floor":                      {ledger.FairShare, ledger.Member{Borrowing: -1}, ledger.Member{Borrowing: -1}, 80, 50},
		"a bound on borrowing":                   {ledger.FairShare, ledger.Member{Nominal: 10, Borrowing: 5}, ledger.Member{Borrowing: -1}, 0, 15},
		"what others never lend":                 {ledger.FairShare, ledger.Member{Borrowing: -1}, ledger.Member{Nominal: 30, Kept: 20, Borrowing: -1}, 0, 80},
		"what others never lend, first come":     {ledger.FirstCome, ledger.Member{Borrowing: -1}, ledger.Member{Nominal: 30, Kept: 20, Borrowing: -1}, 80, 80},
		"the floor and no more":                  {ledger.Static, ledger.Member{Nominal: 20, Borrowing: -1}, ledger.Member{Borrowing: -1}, 0, 60},
		"the bound on what others could make of": {ledger.FairShare, ledger.Member{Borrowing: -1}, ledger.Member{Nominal: 10, Borrowing: 5}, 80, 85},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Name, c.b.Name, c.a.Weight, c.b.Weight = "a", "b", 1, 1
			p := budget(100, []ledger.Member{c.a, c.b})
			p.Strategy = c.strategy
			w := newScript(t, p)
			if c.before > 0 {
				w.at(0, "b", lease(1, c.before))
			}
			if got := all(w, limiter.Second, "a"); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestOneLeaseTakesAPart(t *testing.T) {
	w := newScript(t, budget(100, members("a", "b")))
	expect(t, w.at(0, "a", lease(1, 100)), ledger.Granted, 50)
	expect(t, w.at(0, "b", lease(20, 100)), ledger.Granted, 20) // 12 of 50 for two, but at least what it can use
}

func TestReturnedUnitsAreNotKept(t *testing.T) {
	w := newScript(t, budget(100, members("a", "b")))
	w.at(0, "a", lease(1, 80))
	g := w.at(limiter.Second, "a", lease(1, 80))
	release := following(ledger.Command{Op: ledger.Release}, g)
	release.Granted = 5
	expect(t, w.at(limiter.Second, "a", release), ledger.Granted, 5)
	if got := all(w, limiter.Second, "b"); got != 95 {
		t.Errorf("b got %d of 95 that a does not want", got)
	}
}

func TestALimitOnlyFallsWithinAWindow(t *testing.T) {
	w := newScript(t, budget(10, members("a")))
	w.at(0, "a", lease(1, 1))
	w.params.Limit = 5
	w.at(0, "a", lease(1, 1))
	w.params.Limit = 10
	c := lease(1, 100)
	c.Holder = "a2"
	if g := w.at(0, "a", c); g.Limit != 5 {
		t.Errorf("the limit is %d, want the smallest that was named", g.Limit)
	}
	if g := w.at(limiter.Second, "a", lease(1, 1)); g.Limit != 10 {
		t.Errorf("the limit of the next window is %d", g.Limit)
	}
}

func TestAReservationIsOfItsEpoch(t *testing.T) {
	p := budget(10, members("a"))
	p.Block = 5
	w := newScript(t, p)
	epoch := w.at(0, "a", lease(1, 1)).Epoch
	g := w.at(limiter.Second, "a", ledger.Command{Op: ledger.Reserve, Epoch: epoch, Granted: 5})
	expect(t, g, ledger.Forfeited, 0)
	if w.state.Reserved != 0 {
		t.Errorf("%d of the next window are set aside, want none", w.state.Reserved)
	}
}

func TestAMemoryBelievesTheReportsOfMembers(t *testing.T) {
	p := sliced()
	p.Members[0].Nominal, p.Members[0].Kept = 10, 10
	w := newScript(t, p)
	c := lease(1, 1)
	c.Slice = 50
	w.at(0, "a", c)
	if s, _ := w.state.StandingOf("a"); s.Slice != 50 || s.Next != 50 {
		t.Errorf("%+v of a member that says it heard 50", s)
	}
}

// TestACommandFromBeforeASliceGrewAcknowledgesNothing has a command overtaken by the
// growth of a slice and by the edit that takes it away again.
func TestACommandFromBeforeASliceGrewAcknowledgesNothing(t *testing.T) {
	p := sliced()
	p.Members[0].Kept = 20
	w := newScript(t, p)
	g := w.at(0, "a", lease(1, 1))
	c := following(lease(1, 1), g)
	c.Slice = 20
	g = w.at(limiter.Second, "a", c)
	late := following(lease(1, 1), g)
	late.Slice, late.Holder = 20, "a2"
	w.params.Members[0].Kept = 50
	c = following(c, g)
	if g = w.at(2*limiter.Second, "a", c); g.Slice != 50 {
		t.Fatalf("granted %d, want 50", g.Slice)
	}
	w.params.Members[0].Kept = 10
	w.at(2*limiter.Second, "a", late)
	if s, _ := w.state.StandingOf("a"); s.Next != 50 {
		t.Errorf("%d counts for a, which heard 50", s.Next)
	}
}

// TestDemandOfTenantsIsDueFirst has two members that each want all.
func TestDemandOfTenantsIsDueFirst(t *testing.T) {
	for name, c := range map[string]struct {
		a, b    ledger.Tenants
		nominal int64 // of a
		want    int64 // that a gets of 100, where its tenants weigh 3 and those of b 1
	}{
		"nothing is said":                    {ledger.Tenants{}, ledger.Tenants{}, 0, 75},
		"what is met, and the rest as unmet": {ledger.Tenants{Met: 10, Unmet: 1}, ledger.Tenants{}, 0, 55},
		"of both":                            {ledger.Tenants{Met: 10, Unmet: 1}, ledger.Tenants{Met: 30, Unmet: 1}, 0, 40},
		"after nominal shares":               {ledger.Tenants{Met: 10, Unmet: 1}, ledger.Tenants{}, 20, 65},
		"which leave just enough":            {ledger.Tenants{Met: 40, Unmet: 1}, ledger.Tenants{Met: 40, Unmet: 1}, 20, 60},
		"it does not fit":                    {ledger.Tenants{Met: 80, Unmet: 1}, ledger.Tenants{Met: 21, Unmet: 1}, 0, 75},
		"it does not fit nominal shares":     {ledger.Tenants{Met: 41, Unmet: 1}, ledger.Tenants{Met: 40, Unmet: 1}, 20, 80},
	} {
		t.Run(name, func(t *testing.T) {
			p := budget(100, members("a", "b"))
			p.Members[0].Nominal = c.nominal
			w := newScript(t, p)
			say := func(after limiter.Micros, m string, weight int64, tenants ledger.Tenants) {
				said := lease(1, 1)
				said.Demand, said.Weight, said.Tenants = 100, weight, tenants
				w.at(after, m, said)
			}
			say(0, "b", 1, c.b)
			say(0, "a", 3, c.a)
			if got := all(w, limiter.Second, "a"); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			say(limiter.Second, "a", 3, ledger.Tenants{}) // what was said before is over
			if s, _ := w.state.StandingOf("a"); s.Tenants != (ledger.Tenants{}) {
				t.Errorf("%+v is left of what a said before", s.Tenants)
			}
		})
	}
}
