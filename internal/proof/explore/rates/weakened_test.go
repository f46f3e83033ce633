package rates_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// rules are what members and hubs keep to. A weakening replaces one.
type rules struct {
	charged  int                                      // rates
	granted  func(*system, *limiter.Result)           // changes what a draw is granted
	from     func(sent, received int64) int64         // when what it is granted begins to last
	returns  func(i int) int                          // how often units are put back to a rate
	returned func(index int64, e *escrow.State) int64 // to which window
	step     func(ledger.State, ledger.Params, limiter.Instant, ledger.Command) (ledger.State, ledger.Grant)
	lost     func(i int, s *ledger.State) // changes what a hub begins with
	old      bool                         // an overtaken hub may set units aside
}

func production() rules {
	return rules{
		charged:  both,
		granted:  func(*system, *limiter.Result) {},
		from:     func(sent, _ int64) int64 { return sent },
		returns:  func(int) int { return 1 },
		returned: func(index int64, _ *escrow.State) int64 { return index },
		step:     ledger.State.Step,
		lost:     func(int, *ledger.State) {},
	}
}

// A weakening takes one rule away and shows that a rate needed it: the shortest history that breaks its
// bound has that many steps.
type weakening struct {
	rule  string // that is taken away
	steps int
	of    *system
}

func weak(c *system, without func(*rules)) *system {
	without(&c.rules)
	return c
}

func weakenings() []weakening {
	plain := func() *system { return of(1, 1, func(*system) {}) }
	parts := func() *system {
		return of(2, 1, func(c *system) { c.members, c.want, c.slips = 1, 2, 1 })
	}
	crashing := func() *system {
		return of(1, 2, func(c *system) { c.block, c.crashes, c.leases = 1, 1, 1 })
	}
	crashingLong := func() *system {
		c := crashing()
		c.limits[0][long] = 1
		return c
	}
	return []weakening{
		{"every rate is charged", 7, weak(plain(), func(r *rules) { r.charged = 1 })},
		{"the smallest amount that a rate grants is granted", 3, weak(parts(), func(r *rules) {
			r.granted = func(c *system, res *limiter.Result) { res.Granted = c.want }
		})},
		{"a grant ends with the window that ends first", 9, weak(of(1, 2, func(c *system) { c.members = 1 }), func(r *rules) {
			r.granted = func(c *system, res *limiter.Result) { res.ExpiresIn = res.Windows.Open[long].End().Sub(res.Now) }
		})},
		{"a grant lasts from when it was asked for", 9, weak(of(1, 2, func(c *system) { c.members, c.ticks, c.slips = 1, 2, 1 }), func(r *rules) {
			r.from = func(_, received int64) int64 { return received }
		})},
		{"what the long rate does not grant goes back to the short one", 2, weak(parts(), func(r *rules) {
			r.returns = func(i int) int { return i - short }
		})},
		{"what a process gives back goes back to the long rate, too", 4, weak(plain(), func(r *rules) {
			r.returns = func(i int) int { return long - i }
		})},
		{"units go back once", 4, weak(parts(), func(r *rules) { r.returns = func(int) int { return 2 } })},
		{"units go back to the window that they are of", 8, weak(of(1, 2, func(c *system) { c.members, c.hands = 1, 2 }), func(r *rules) {
			r.returned = func(_ int64, e *escrow.State) int64 { return e.Epoch.Index }
		})},
		{"what was set aside of the short rate counts as granted", 9, weak(crashing(), func(r *rules) { r.lost = losing(short) })},
		{"what was set aside of the long rate counts as granted", 10, weak(crashingLong(), func(r *rules) { r.lost = losing(long) })},
		{"a hub that was overtaken sets nothing aside", 9, weak(crashing(), func(r *rules) { r.old = true })},
	}
}

// losing has a hub begin without the record of a rate.
func losing(of int) func(int, *ledger.State) {
	return func(i int, s *ledger.State) {
		if i == of {
			s.Reserved = 0
		}
	}
}

func TestEveryRuleOfRatesIsNeeded(t *testing.T) {
	for _, w := range weakenings() {
		t.Run(w.rule, func(t *testing.T) {
			explore.RefuteIn(t, w.of.model(), w.steps)
		})
	}
}
