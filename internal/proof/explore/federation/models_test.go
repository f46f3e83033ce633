package federation_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A model is a system that keeps its bound, and the length of the shortest
// history that reaches it.
type model struct {
	name  string
	steps int
	of    *system
}

// budgetOf returns the parameters of a budget of equal members.
func budgetOf(limit int64, regions int, change func(*ledger.Params)) ledger.Params {
	p := published{regions: regions, limit: limit}.params()
	change(&p)
	return p
}

func plain(*ledger.Params) {}

// of returns a model of two regions, in which a batch is the whole limit.
func of(limit int64, change func(*system), params ...ledger.Params) *system {
	if len(params) == 0 {
		params = []ledger.Params{budgetOf(limit, 2, plain)}
	}
	c := &system{params: params, regions: 2, windows: 1, ticks: 1, sends: 2, batch: limit, rules: production()}
	change(c)
	return c
}

func blocks(p *ledger.Params) { p.Block = 1 }

func sliced(kept ...int64) func(*ledger.Params) {
	return func(p *ledger.Params) {
		p.Slices = true
		for i, k := range kept {
			p.Members[i].Nominal, p.Members[i].Kept = k, k
		}
	}
}

func models() []model {
	one := budgetOf(2, 1, plain)
	return []model{
		{"messages that take any time and arrive twice", 4, of(1, func(c *system) { c.repeats, c.windows, c.sends = 1, 2, 1 })},
		{"a region whose messages overtake each other", 8, of(2, func(c *system) {
			c.repeats, c.regions, c.windows, c.batch, c.sends = 1, 1, 2, 1, 3
		}, one)},
		{"regions that give back", 4, of(1, func(c *system) { c.release, c.repeats = true, 1 })},
		{"a region that gives back across windows", 4, of(1, func(c *system) {
			c.release, c.sends, c.windows, c.regions = true, 3, 2, 1
		}, budgetOf(1, 1, plain))},
		{"clocks that differ, windows counted in halves", 4, of(1, func(c *system) {
			c.windows, c.ticks, c.sends, c.offset = 2, 2, 1, 7*limiter.MinWindow/2
		})},
		{"processes below the escrow", 8, of(2, func(c *system) { c.hands, c.windows, c.ticks, c.regions = true, 2, 2, 1 }, one)},
		{"memories that lose all", 4, of(1, func(c *system) { c.crashes, c.windows, c.sends = 1, 2, 1 })},
		{"memories that serve at once, from blocks", 8, of(2, func(c *system) {
			c.crashes, c.keeps, c.sends, c.batch = 1, true, 1, 2
		}, budgetOf(2, 2, blocks))},
		{"a region that gives back while the term changes", 7, of(2, func(c *system) {
			c.crashes, c.keeps, c.release, c.regions, c.sends = 1, true, true, 1, 2
		}, budgetOf(2, 1, blocks))},
		{"slices that are edited", 6, of(1, func(c *system) { c.windows, c.sends, c.others = 2, 2, 1 },
			budgetOf(1, 2, sliced(1, 0)), budgetOf(1, 2, sliced(0, 1)))},
	}
}

func TestPromisesHoldInEveryHistory(t *testing.T) {
	for _, m := range models() {
		t.Run(m.name, func(t *testing.T) {
			explore.Hold(t, m.of.model(), nil)
			tight := *m.of
			tight.spare = 1
			explore.RefuteIn(t, tight.model(), m.steps)
		})
	}
}
