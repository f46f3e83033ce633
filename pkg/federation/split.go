package federation

import (
	"cmp"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A split divides what the region gets of a window over the holders of each limit that
// draws on the budget, and over its tenants, as a store does that has the whole limit
// (limiter.Params.Step).
type split map[store.Key]*division

// A division is of one limit.
type division struct {
	state  limiter.State
	index  int64 // of the window
	weight int64 // of the tenants that asked in it,
	before int64 // and in the one before
}

// A portion is what can be divided.
type portion struct {
	rate  limiter.Rate // of the budget
	index int64        // of the window
	at    limiter.Instant
	units int64 // in hand, of which the request gets all or a part
	more  int64 // that the region may still get
}

// take divides a portion, and returns what the request gets.
func (s split) take(q *request, of portion) limiter.Result {
	d := s[q.key]
	if d == nil {
		s.forget(of.index)
		d = &division{}
		s[q.key] = d
	}
	d.roll(of.index)
	p, c := d.params(q, of), q.Command
	c.Want = max(of.units, c.Min)
	var res limiter.Result
	d.state, res = p.Step(d.state, of.at, c)
	d.weigh(&q.params.Fairness)
	return d.tell(q, of, res)
}

// putBack takes units off again that were not handed on.
func (s split) putBack(q *request, of portion) {
	d := s[q.key]
	if d == nil || d.index != of.index || of.units == 0 {
		return
	}
	p, c := d.params(q, of), q.Command
	c.Op, c.Want, c.Windows = limiter.Return, of.units, d.state.Windows(of.at)
	d.state, _ = p.Step(d.state, of.at, c)
}

// roll goes on to another window.
func (d *division) roll(index int64) {
	if d.index == index {
		return
	}
	d.before = 0
	if d.index+1 == index {
		d.before = d.weight
	}
	d.index, d.weight = index, 0
}

// params returns the parameters by which the division goes: the limit is what the region
// has of the window and may still get. Nothing is reserved for a declared tenant that is
// idle here: it may ask elsewhere, where its weight counts.
func (d *division) params(q *request, of portion) limiter.Params {
	p, rate := q.params, of.rate
	rate.Limit = max(1, min(d.used(of.index)+of.units+of.more, limiter.MaxLimit))
	p.Rates = []limiter.Rate{rate}
	p.Fairness.Reserve = false
	return p
}

// used returns what was handed on of the window.
func (d *division) used(index int64) int64 {
	for _, m := range d.state.Slice() {
		if m.Index == index {
			return m.Used
		}
	}
	return 0
}

// tell completes an answer with the figures of the budget.
func (d *division) tell(q *request, of portion, res limiter.Result) limiter.Result {
	if res.Reason == limiter.TooLarge && !neverFits(q, of) {
		res.Reason, res.RetryAfter = limiter.Exhausted, res.ResetAfter
	}
	if q.params.Fairness.Default == 0 {
		res.Limit = of.rate.Limit
	}
	for i := range res.Windows.Slice() {
		res.Windows.Open[i].Limit = of.rate.Limit
	}
	return res
}

// neverFits reports whether the budget never grants as much as the request asks for.
func neverFits(q *request, of portion) bool {
	p, c := q.params, q.Command
	p.Rates, c.Op = []limiter.Rate{of.rate}, limiter.Peek
	p.Since = 0
	_, res := p.Step(limiter.State{}, of.at, c)
	return res.Reason == limiter.TooLarge
}

// weigh adds up the weights of the tenants that asked in the window.
func (d *division) weigh(f *limiter.Fairness) {
	d.weight = 0
	if f.Default == 0 {
		return
	}
	for _, t := range d.state.Tenants {
		if t.Used == limiter.Lately {
			continue
		}
		i, declared := slices.BinarySearchFunc(f.Weights, t.Tenant, func(w limiter.Weight, name string) int {
			return cmp.Compare(w.Tenant, name)
		})
		if declared {
			d.weight += f.Weights[i].Weight
		} else {
			d.weight += f.Default
		}
	}
}

// weight returns what the tenants of the region weigh that ask in the window, or did in
// the one before; 0 when nothing is split over tenants. A tenant counts whole even when it
// wants little, so regions share as one only while the tenants of each want the same by
// weight.
func (s split) weight(index int64) int64 {
	var sum int64
	for _, d := range s {
		switch d.index {
		case index:
			sum += max(d.weight, d.before)
		case index - 1:
			sum += d.weight
		}
	}
	return min(sum, ledger.MaxClaim)
}

// forget drops the divisions of limits that nobody asks for any more.
func (s split) forget(index int64) {
	for key, d := range s {
		if d.index+1 < index {
			delete(s, key)
		}
	}
}
