package federation_test

import (
	"github.com/weir-dev/weir/pkg/federation/birth"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A newborn is a nursery that keeps its bound, or that a weakening breaks, and the length
// of the shortest history that shows it.
type newborn struct {
	name  string
	steps int
	of    *nursery
}

var (
	two   = [][]string{{"a", "b"}}
	grows = [][]string{{"a"}, {"a", "b"}}
	falls = [][]string{{"a", "b"}, {"b"}}
	turns = [][]string{{"a", "b"}, {"a", "c"}}
)

// born returns a nursery of two clusters that have the first list, and of one window.
func born(lists [][]string, change func(*nursery)) *nursery {
	n := &nursery{lists: lists, joins: []int{0, 0}, losses: 1, windows: 1, sends: 2, rules: productionBirths()}
	change(n)
	return n
}

func nurseries() []newborn {
	return []newborn{
		{"clusters that take part at any time", 10, born(two, func(n *nursery) { n.losses = 2 })},
		{"windows that memories began before", 6, born(two, func(n *nursery) { n.windows = 2 })},
		{"processes that start again", 10, born(two, func(n *nursery) { n.crashes = 1 })},
		{"budgets that are deleted and created again", 6, born(two, func(n *nursery) { n.leaves, n.windows = 2, 2 })},
		{"a cluster that joins", 5, born(grows, func(n *nursery) { n.joins[1], n.windows = 1, 2 })},
		{"a cluster that is not listed any more", 5, born(falls, func(n *nursery) { n.windows = 2 })},
		{"a cluster in the place of another", 5, born(turns, func(n *nursery) { n.joins, n.windows, n.sends = []int{0, 0, 1}, 2, 1 })},
	}
}

func weakBirths() []newborn {
	later := func(lists [][]string, without func(*nursery)) *nursery {
		return born(lists, func(n *nursery) { n.windows = 2; without(n) })
	}
	return []newborn{
		{"each vouches for the first memory that it met", 14, later(two, func(n *nursery) {
			n.rules.vouch = func(b birth.Birth, list []string, serves int64) (int64, int64) {
				_, of := b.Vouch(list)
				return serves, of
			}
		})},
		{"all members vouch", 11, later(two, func(n *nursery) { n.rules.step = oneVouches })},
		{"all mean the same members", 19, later(turns, func(n *nursery) {
			n.joins, n.sends = []int{0, 0, 1}, 1
			n.rules.step = anyList
		})},
		{"a list that lost somebody is not vouched for", 13, later(falls, func(n *nursery) {
			n.rules.follow = func(b birth.Birth, list []string) birth.Birth { b.Members = list; return b }
		})},
		{"a memory is met before anything is asked", 14, later(two, func(n *nursery) { n.rules.first = false })},
		{"what was deleted is remembered until its windows are over", 18, later(two, func(n *nursery) {
			n.leaves = 1
			n.rules.late = func(c *cluster, _ int64) bool { return !c.has }
		})},
		{"a cluster is listed before it takes part", 12, later(grows, func(n *nursery) { n.joins[1], n.rules.listed = 1, false })},
	}
}

// anyList takes all lists for the same.
func anyList(s ledger.State, p ledger.Params, now limiter.Instant, c ledger.Command) (ledger.State, ledger.Grant) {
	c.List = min(c.List, 1)
	return s.Step(p, now, c)
}

// oneVouches takes the vouch of one member for that of all.
func oneVouches(s ledger.State, p ledger.Params, now limiter.Instant, c ledger.Command) (ledger.State, ledger.Grant) {
	next, g := s.Step(p, now, c)
	if g.Reason == ledger.Amnesia && c.List != 0 && c.Born == c.Memory.Term {
		c.Memory.Since = 0
		return s.Step(p, now, c)
	}
	return next, g
}
