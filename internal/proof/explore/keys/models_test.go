package keys_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
)

// A model is a system that keeps its bound, how many states it has, and the length of the
// shortest history that reaches the bound.
type model struct {
	name   string
	states int
	steps  int
	of     *system
}

// of returns a model of two regions and one key, whose limit is one block.
func of(change func(*system)) *system {
	c := &system{groups: []int{0}, limit: 1, block: 1, regions: 2, windows: 1, ticks: 1, sends: 1, rules: production()}
	change(c)
	return c
}

func models() []model {
	return []model{
		{"messages that take any time, in windows of two ticks", 1182, 4, of(func(c *system) { c.windows, c.ticks, c.block = 2, 2, 0 })},
		{"a region whose messages overtake each other", 477, 5, of(func(c *system) {
			c.regions, c.windows, c.block, c.limit, c.sends = 1, 2, 0, 2, 3
		})},
		{"purses that are dropped", 950, 5, of(func(c *system) { c.limit, c.block, c.sends, c.drops = 2, 0, 2, 1 })},
		{"processes that take units and give them back", 1302, 7, of(func(c *system) {
			c.limit, c.block, c.regions, c.windows, c.ticks, c.sends, c.hands = 2, 0, 1, 2, 2, 2, true
		})},
		{"slices that are used without asking", 5465, 6, of(func(c *system) {
			c.limit, c.block, c.slice, c.drops, c.windows = 3, 0, 1, 1, 2
		})},
		{"memories that serve at once", 2085, 21, of(func(c *system) { c.limit, c.crashes, c.regions, c.sends = 3, 1, 1, 3 })},
		{"memories that serve at once, across windows", 22460, 14, of(func(c *system) { c.limit, c.crashes, c.windows, c.regions, c.sends = 2, 1, 2, 1, 3 })},
		{"three memories", 15389, 21, of(func(c *system) { c.limit, c.crashes, c.regions, c.sends = 3, 2, 1, 3 })},
		{"two keys of one group", 11030, 13, of(func(c *system) { c.groups, c.limit, c.crashes, c.regions, c.sends = []int{0, 0}, 2, 1, 1, 2 })},
		{"two keys of two groups", 20050, 14, of(func(c *system) { c.groups, c.limit, c.crashes, c.regions, c.sends = []int{0, 1}, 2, 1, 1, 2 })},
		{"units that are set aside ahead of need", 508, 16, of(func(c *system) {
			c.limit, c.block, c.crashes, c.regions, c.sends, c.hasty = 4, 2, 1, 1, 2, true
		})},
	}
}

func TestPromisesHoldInEveryHistory(t *testing.T) {
	for _, m := range models() {
		t.Run(m.name, func(t *testing.T) {
			if r := explore.Hold(t, m.of.model(), nil); r.States != m.states {
				t.Errorf("%d states, want %d", r.States, m.states)
			}
			tight := *m.of
			tight.spare = 1
			explore.RefuteIn(t, tight.model(), m.steps)
		})
	}
}
