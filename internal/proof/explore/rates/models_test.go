package rates_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
)

// A model is a system that keeps its bounds, how many states it has, and the length of the shortest
// history that reaches the bound of each rate.
type model struct {
	name   string
	states int
	steps  [both]int
	of     *system
}

// of returns a model of two members. Two short windows are a long one.
func of(limitOfShort, limitOfLong int64, change func(*system)) *system {
	c := &system{
		limits: [][both]int64{{limitOfShort, limitOfLong}}, members: 2, shorts: 2, ticks: 1, longs: 1, leases: 2, want: 1, hands: 1, rules: production(),
	}
	change(c)
	return c
}

func models() []model {
	return []model{
		{"two members", 2340, [both]int{4, 9}, of(1, 2, func(*system) {})},
		{"draws that one rate grants in part, while time passes", 432, [both]int{6, 11}, of(2, 3, func(c *system) {
			c.members, c.want, c.leases, c.slips = 1, 2, 3, 2
		})},
		{"windows of two ticks, and clocks that differ", 699, [both]int{4, 4}, of(1, 1, func(c *system) {
			c.ticks, c.slips, c.leases, c.offset = 2, 1, 1, 17*c.tick()/2
		})},
		{"answers that get lost", 10354, [both]int{4, 9}, of(1, 2, func(c *system) { c.losses = 1 })},
		{"two processes of a member", 2068, [both]int{8, 13}, of(2, 3, func(c *system) { c.members, c.hands, c.leases, c.longs = 1, 2, 3, 2 })},
		{"limits that are edited", 16082, [both]int{4, 9}, of(1, 2, func(c *system) {
			c.limits = append(c.limits, [both]int64{2, 1})
		})},
		{"hubs that go on from blocks", 1886, [both]int{4, 9}, of(1, 2, func(c *system) { c.block, c.crashes, c.leases = 1, 1, 1 })},
		{"hubs that go on from blocks, and limits that are edited", 3530, [both]int{4, 9}, of(1, 2, func(c *system) {
			c.limits = append(c.limits, [both]int64{2, 3})
			c.block, c.crashes, c.members = 1, 1, 1
		})},
	}
}

func TestEachRateHoldsInEveryHistory(t *testing.T) {
	for _, m := range models() {
		t.Run(m.name, func(t *testing.T) {
			if r := explore.Hold(t, m.of.model(), nil); r.States != m.states {
				t.Errorf("%d states, want %d", r.States, m.states)
			}
			for i := range both {
				tight := *m.of
				tight.spare[i] = 1
				t.Run(names[i], func(t *testing.T) { explore.RefuteIn(t, tight.model(), m.steps[i]) })
			}
		})
	}
}
