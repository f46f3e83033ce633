package keys_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/keys"
)

// A weakening takes one rule away and shows that the bound needed it: the shortest history
// that breaks the bound has that many steps.
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
	plain := func() *system { return of(func(c *system) { c.windows, c.ticks, c.block = 2, 2, 0 }) }
	serving := func(limit int64) *system {
		return of(func(c *system) { c.limit, c.crashes, c.regions, c.sends = limit, 1, 1, 3 })
	}
	return []weakening{
		{"a window lasts from when the command was sent", 10, weak(plain(), func(r *rules) {
			r.fill = func(p keys.Purse, a keys.Answer, now, life int64) keys.Purse {
				a.Ends = now + life
				return p.Fill(a)
			}
		})},
		{"what is in hand dies with the window", 10, weak(plain(), func(r *rules) {
			r.open = func(p keys.Purse, now int64) keys.Purse {
				p.Ends = max(p.Ends, now+1)
				return p
			}
		})},
		{"what is in hand of a window before is given up", 9, weak(of(func(c *system) { c.windows, c.block, c.regions, c.sends = 2, 0, 1, 2 }), func(r *rules) {
			r.fill = func(p keys.Purse, a keys.Answer, _, _ int64) keys.Purse {
				next := p.Fill(a)
				if a.Index > p.Index {
					next.Units += p.Units
				}
				return next
			}
		})},
		{"an answer of a window before is given up", 9, weak(of(func(c *system) { c.windows, c.block, c.sends = 2, 0, 2 }), func(r *rules) {
			r.fill = func(p keys.Purse, a keys.Answer, _, _ int64) keys.Purse {
				a.Index = max(a.Index, p.Index)
				return p.Fill(a)
			}
		})},
		{"only units of the window are put back", 13, weak(of(func(c *system) {
			c.limit, c.block, c.regions, c.windows, c.sends, c.hands = 1, 0, 1, 2, 2, true
		}), func(r *rules) {
			r.putBack = func(p keys.Purse, now, _ int64) keys.Purse {
				p.Units++
				return p
			}
		})},
		{"a slice that was used is not forgotten in its window", 4, weak(of(func(c *system) {
			c.limit, c.block, c.slice, c.drops = 2, 0, 1, 1
		}), func(r *rules) { r.dropped = func(keys.Use) keys.Use { return keys.Use{} } })},
		{"no other region is granted units of a slice", 6, weak(of(func(c *system) {
			c.limit, c.block, c.slice = 2, 0, 1
		}), func(r *rules) { r.pool = func(limit, _ int64) int64 { return limit } })},
		{"what was set aside counts as granted", 12, weak(serving(1), func(r *rules) {
			r.succeed = func(a keys.Aside) keys.State { return keys.State{Saved: a} }
		})},
		{"so does what was set aside of one group", 19, weak(serving(2), func(r *rules) {
			r.succeed = func(a keys.Aside) keys.State {
				s := keys.Succeed(a)
				s.Before.Marks = nil
				return s
			}
		})},
		{"a memory that was overtaken sets nothing aside", 22, weak(serving(2), func(r *rules) { r.old = true })},
		{"units are granted when they are set aside", 10, weak(serving(2), func(r *rules) {
			r.take = func(s keys.State, w keys.Window, group int, had int64, a keys.Ask) keys.Grant {
				w.Block = 0
				return s.Take(w, group, had, a)
			}
		})},
		{"a write counts when it is known to have arrived", 11, weak(serving(1), func(r *rules) { r.early = true })},
		{"no write sets less aside than the one before", 26, weak(of(func(c *system) {
			c.groups, c.limit, c.crashes, c.regions, c.sends = []int{0, 1}, 2, 1, 1, 3
		}), func(r *rules) {
			r.aside = func(s keys.State, w keys.Window, wants map[int]int64) keys.Aside {
				s.Saved.Marks = nil
				return s.Aside(w, wants, 0)
			}
		})},
	}
}

func TestEveryRuleIsNeeded(t *testing.T) {
	for _, w := range weakenings() {
		t.Run(w.rule, func(t *testing.T) {
			explore.RefuteIn(t, w.of.model(), w.steps)
		})
	}
}
