package federation

import (
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A crowd is all tenants of the region.
type crowd struct {
	list     []ledger.Tenant
	weight   int64 // at most ledger.MaxClaim
	declared bool  // one of them is, and asked in the window
	lately   bool  // one of them is, and asked in the window before
}

// tenants returns those that share a window: the declared ones that asked in it or in the one
// before, and of the others those of the one of both windows in which they weigh more. So the
// region does not seem empty when a window begins, nor twice as full when tenants come and go.
func (s split) tenants(index int64) crowd {
	var c crowd
	for _, d := range s {
		list := d.tenants
		switch d.index {
		case index:
		case index - 1:
			list = list.next()
		default:
			continue
		}
		var now, before int64
		for _, t := range list {
			if t.asked != absent {
				now += t.weight
			}
			if t.before != absent {
				before += t.weight
			}
		}
		for _, t := range list {
			if t.declared || now >= before && t.asked != absent || now < before && t.before != absent {
				c.add(&t)
			}
		}
	}
	return c
}

func (c *crowd) add(t *tenant) {
	if c.weight+t.weight > ledger.MaxClaim {
		return
	}
	c.list = append(c.list, t.wants())
	c.weight += t.weight
	c.declared = c.declared || t.declared && t.asked != absent
	c.lately = c.lately || t.declared && t.before != absent
}

// keeps reports whether the part of a tenant is kept for it that may not ask for it: a declared one
// that asked in the window, or in the one before. The latter has until that much of the
// window is left as late says, or other regions could not have its part in the next one.
func (c *crowd) keeps(life float64) bool { return c.declared || c.lately && life > late }

// late is the part of a window that is left late in it.
const late = 1.0 / 16

// say completes a command by what the tenants want at a level, of a member with that nominal
// share, when such a part of the window is left. While the part of one is kept for it the
// region wants all that it is due.
func (c *crowd) say(to *ledger.Command, level, nominal, limit int64, life float64) {
	to.Weight = c.weight
	to.Tenants = ledger.TenantsAt(level, nominal, c.list)
	to.Tenants.Met = min(to.Tenants.Met, limiter.MaxLimit)
	if c.keeps(life) {
		to.Demand = limit
	}
}

// reached returns the level of the tenants after an answer to a command, of a member with that
// nominal share.
func reached(c *ledger.Command, g *ledger.Grant, nominal int64) int64 {
	return c.Tenants.Level(g.Granted + g.NowSlice + g.Remaining - nominal)
}
