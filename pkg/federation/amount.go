package federation

import "math"

// amount returns what to ask for, and the least of it that is of use.
func (r *Region) amount(o *outlook, now int64) (least, want int64) {
	v := r.vault()
	var remaining int64
	if r.deadline(v) > now {
		remaining = v.seen.remaining
	}
	size := r.config.Batch.Size
	if !r.config.Batch.Fixed {
		size = max(r.rule.Lease(r.demand.sizer, o.life), int64(math.Ceil(2*o.rate*r.link.trip.most())))
	}
	level := r.low(o) + size
	if most := int64(math.Ceil(o.rest + r.slack()*math.Sqrt(o.rest))); o.known && (level > most || r.config.Outage == RegionalOnly) {
		level = most
	}
	want = min(r.need.want+max(0, level-remaining), r.config.Params.Limit)
	least = max(1, min(r.need.least-remaining, want))
	return least, want
}

// slack is the number of roots of the expected amount that are held beyond it: none
// when little is left for others.
func (r *Region) slack() float64 {
	if r.link.grant.Remaining < r.link.grant.Limit/4 {
		return 0
	}
	return 1
}

// low returns how many units the escrow has when the next are asked for: so that it does
// not run out before they come or, where an outage is to be hardly felt, before the
// window is over.
func (r *Region) low(o *outlook) int64 {
	ahead := o.rate * r.link.trip.most()
	low := math.Ceil(ahead + math.Sqrt(ahead))
	if r.config.Outage == RegionalOnly {
		low = max(low, o.rest-math.Sqrt(o.rest))
	}
	return int64(low)
}

// outlook returns what is expected of the rest of the window, or of the next one when
// none is open.
func (r *Region) outlook(now int64) outlook {
	v := r.vault()
	left := r.deadline(v) - now
	if left <= 0 {
		return r.demand.outlook(r.window(), r.window(), 0)
	}
	return r.demand.outlook(float64(left), r.window(), r.demand.asked())
}
