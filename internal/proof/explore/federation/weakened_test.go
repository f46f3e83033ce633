package federation_test

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A weakening takes one rule away and shows that the bound needed it: the shortest
// history that breaks the bound has that many steps.
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
	giving := func(sends int) *system {
		return of(1, func(c *system) { c.release, c.sends, c.others = true, sends, 1 })
	}
	serving := func() *system {
		return of(1, func(c *system) { c.crashes, c.keeps, c.sends = 1, true, 1 }, budgetOf(1, 2, blocks))
	}
	return []weakening{
		{"a command that was overtaken changes nothing", 13, weak(giving(3), func(r *rules) { r.step = unnumbered })},
		{"what is given back is taken off before", 10, weak(giving(2), func(r *rules) {
			r.given = func(before, after *escrow.State) { after.Granted = before.Granted }
		})},
		{"an answer from before a release is not taken", 13, weak(giving(3), func(r *rules) {
			r.fill = func(e *escrow.State, _ *escrow.Command, _ limiter.Instant) { e.Floor = 0 }
		})},
		{"a window lasts from when the command was sent", 10, weak(
			of(1, func(c *system) { c.windows, c.ticks, c.sends = 2, 2, 1 }),
			func(r *rules) {
				r.fill = func(e *escrow.State, c *escrow.Command, now limiter.Instant) { c.At, e.Latest = now, now }
			})},
		{"what a process has in hand dies with the window", 11, weak(
			of(1, func(c *system) { c.hands, c.windows = true, 2 }),
			func(r *rules) { r.alive = func(int64, int64) bool { return true } })},
		{"a memory grants nothing of a window that is older", 9, weak(
			of(1, func(c *system) { c.crashes, c.sends = 1, 1 }),
			func(r *rules) { r.since = func(limiter.Instant) limiter.Instant { return 0 } })},
		{"what was set aside counts as granted", 9, weak(serving(), func(r *rules) {
			r.lost = func(s *ledger.State) { s.Reserved = 0 }
		})},
		{"a memory that was overtaken sets nothing aside", 9, weak(serving(), func(r *rules) { r.old = true })},
		{"units are granted when they are set aside", 9, weak(serving(), func(r *rules) { r.step = unreserved })},
		{"a slice counts until its member knows better", 13, weak(
			of(1, func(c *system) { c.windows, c.sends, c.others = 3, 1, 2 }, budgetOf(1, 2, sliced(1, 0)), budgetOf(1, 2, sliced(0, 1))),
			func(r *rules) { r.step = hasty })},
	}
}

// unnumbered serves a command that was overtaken as if it were new.
func unnumbered(s ledger.State, p ledger.Params, now limiter.Instant, c ledger.Command) (ledger.State, ledger.Grant) {
	for _, a := range s.Accounts {
		if a.Member == c.Member && a.Holder == c.Holder && c.Op != ledger.Reserve {
			c.Seq = max(c.Seq, a.Seq+1)
		}
	}
	return s.Step(p, now, c)
}

// unreserved grants what is not set aside.
func unreserved(s ledger.State, p ledger.Params, now limiter.Instant, c ledger.Command) (ledger.State, ledger.Grant) {
	p.Block = 0
	return s.Step(p, now, c)
}

// hasty takes a slice away when the budget is edited.
func hasty(s ledger.State, p ledger.Params, now limiter.Instant, c ledger.Command) (ledger.State, ledger.Grant) {
	s.Standings = slices.Clone(s.Standings)
	for i := range s.Standings { // a is the first of both
		s.Standings[i].Next = min(s.Standings[i].Next, p.Members[i].Kept)
	}
	return s.Step(p, now, c)
}

func TestEveryRuleIsNeeded(t *testing.T) {
	for _, w := range weakenings() {
		t.Run(w.rule, func(t *testing.T) {
			explore.RefuteIn(t, w.of.model(), w.steps)
		})
	}
}
