package federation

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A split divides what the region gets of a window over the holders of each limit that
// draws on the budget, and over its tenants. It does so as a store that has the whole limit
// (limiter.Params.Step), but what an undeclared tenant does not want of its part goes to
// those that want more.
type split map[store.Key]*division

// A division is the part of one limit.
type division struct {
	state   limiter.State
	index   int64 // of the window
	tenants tenants
}

// A portion is what can be divided.
type portion struct {
	rate  limiter.Rate // of the budget
	index int64        // of the window
	at    limiter.Instant
	units int64 // in hand; the request gets all or a part
	more  int64 // that the region may still get
}

// at returns the division of a limit, in a window.
func (s split) at(q *request, index int64) *division {
	d := s[q.key]
	if d == nil {
		s.forget(index)
		d = &division{}
		s[q.key] = d
	}
	d.roll(index)
	if q.params.Fairness.Default == 0 {
		d.tenants = nil // an edit ended it
	}
	return d
}

// look returns a copy of the division of a limit, in a window. It makes none.
func (s split) look(q *request, index int64) *division {
	var d division
	if known := s[q.key]; known != nil {
		d = *known
	}
	d.roll(index)
	return &d
}

// take divides a portion, and returns what the request gets. A peek changes nothing.
func (s split) take(q *request, of portion) limiter.Result {
	var d *division
	if q.Op == limiter.Peek {
		d = s.look(q, of.index)
	} else {
		d = s.at(q, of.index)
	}
	p, c := d.params(q, of), q.Command
	c.Want = max(of.units, c.Min)
	if c.Op == limiter.Take {
		d.note(q, 0)
	}
	res := d.step(p, of.at, c)
	if c.Op == limiter.Take {
		d.note(q, res.Granted)
	}
	return d.complete(q, of, res)
}

// missed notes what a request asked for in vain.
func (s split) missed(q *request, index int64) {
	if index > 0 {
		s.at(q, index).note(q, q.Want)
	}
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
	d.note(q, -of.units)
}

// note adds to what the tenant of a request asked for.
func (d *division) note(q *request, units int64) {
	if f := &q.params.Fairness; f.Default > 0 {
		d.tenants.note(f, q.Tenant, units)
	}
}

// roll goes on to another window.
func (d *division) roll(index int64) {
	if d.index == index {
		return
	}
	if d.index+1 == index {
		d.tenants = d.tenants.next()
	} else {
		d.tenants = nil
	}
	d.index = index
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

// complete adds the figures of the budget.
func (d *division) complete(q *request, of portion, res limiter.Result) limiter.Result {
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

// forget drops the divisions of limits that nobody asks for any more.
func (s split) forget(index int64) {
	for key, d := range s {
		if d.index+1 < index {
			delete(s, key)
		}
	}
}
