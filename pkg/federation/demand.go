package federation

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

// smoothing is the weight of the latest window in the forecast.
const smoothing = 0.5

// A demand is what is asked of the region.
type demand struct {
	index          int64 // of the window
	taken, refused int64 // units of it
	claim          claim
	level          int64 // of the tenants, in parts of ledger.Scale
	known          bool  // a window is over
	forecast       float64
	sizer          sizing.Sizer
}

// roll goes on to the window that is open.
func (d *demand) roll(rule sizing.Rule, index int64) {
	if index <= d.index {
		return
	}
	if d.index > 0 {
		asked := float64(d.asked())
		if !d.known {
			d.known, d.forecast = true, asked
		}
		d.forecast += smoothing * (asked - d.forecast)
		d.forecast *= math.Pow(1-smoothing, float64(index-d.index-1))
		d.sizer = rule.Observe(d.sizer, d.asked())
	}
	d.index, d.taken, d.refused = index, 0, 0
}

// asked returns the units that were asked for in the window.
func (d *demand) asked() int64 { return min(d.taken+d.refused, limiter.MaxLimit) }

// An outlook is what is expected of the rest of a window.
type outlook struct {
	whole float64 // units of the whole window
	rest  float64 // units of the rest of it
	rate  float64 // units per nanosecond
	life  float64 // what part of the window is left
	known bool    // there is anything to expect it by
}

// prior is for what part of a window a forecast counts beside what was asked for since
// the window began: the mean of a Gamma distribution of the rate.
const prior = 0.25

// outlook returns what is expected in the rest of a window; left and window are in
// nanoseconds.
func (d *demand) outlook(left, window float64, asked int64) outlook {
	left = max(0, min(left, window))
	o := outlook{life: left / window, known: d.known || asked > 0}
	weight := prior
	if !d.known {
		weight = prior / 8
	}
	o.rate = (d.forecast*weight + float64(asked)) / (window * (weight + 1 - o.life))
	o.rest = o.rate * left
	o.whole = float64(asked) + o.rest
	return o
}

// ruleOf returns how the size of leases is learned.
func ruleOf(cfg *Config) sizing.Rule {
	return sizing.Rule{Low: 1, High: cfg.Params.Limit, Start: min(cfg.Batch.Size, cfg.Params.Limit)}
}

// A claim is what the coordinator keeps for the region in the window of an epoch: what
// it said that it wants, or wanted of the window before.
type claim struct {
	epoch        int64
	said, before int64
}

// note keeps what the coordinator was sent, and that it heard.
func (c *claim) note(index, wants int64, settled bool) {
	if index > c.epoch {
		c.before = 0
		if index == c.epoch+1 {
			c.before = c.said
		}
		c.epoch = index
	}
	c.said = wants
	if settled {
		c.before = min(c.before, wants)
	}
}

// of returns how much is claimed of a window.
func (c *claim) of(index int64) int64 {
	if index != c.epoch {
		return 0
	}
	return max(c.said, c.before)
}
