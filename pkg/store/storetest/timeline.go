package storetest

import (
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Dice yields the choices that make a timeline.
type Dice func() uint64

// A Timeline is a sequence of calls for one counter, chosen at random and at the
// edges of what is valid: where the integers of two languages could part.
type Timeline struct {
	// Memory is the store's before the first call.
	Memory limiter.Memory

	dice   Dice
	now    limiter.Instant
	params limiter.Params
	grants []grant
}

// A Call is one command at an instant of the store's clock.
type Call struct {
	Now     limiter.Instant
	Params  limiter.Params
	Command limiter.Command
}

// A grant is what a holder may still return.
type grant struct {
	limiter.Result
	tenant string
}

// NewTimeline begins a timeline.
func NewTimeline(d Dice) *Timeline {
	t := &Timeline{dice: d, now: oneOf(d, edgeStarts)}
	t.params = d.params(d.below(3))
	t.Memory = limiter.Memory{Since: d.near(t.now), Latest: d.near(t.now)}
	if !d.one(4) {
		t.Memory = limiter.Memory{Since: max(0, t.now-limiter.Instant(limiter.MaxWindow))}
	}
	return t
}

// Next returns the next call, and Answered is given its result.
func (t *Timeline) Next() Call {
	t.now = t.dice.later(t.now, t.params)
	t.params = t.dice.edit(t.params)
	c := Call{Now: t.now, Params: t.params, Command: t.dice.command(t.params, t.grants)}
	if t.dice.one(16) {
		c.Params.Generation = max(0, t.params.Generation-1) // a holder that is behind
	}
	return c
}

// Answered lets later calls return what a call was granted.
func (t *Timeline) Answered(c Call, res limiter.Result) {
	if c.Command.Op == limiter.Take && res.Granted > 0 {
		t.grants = append(t.grants, grant{res, c.Command.Tenant})
	}
}

// Values at which integers of two languages could part.
var (
	edgeLengths = []limiter.Micros{
		limiter.MinWindow, limiter.MinWindow + 1, limiter.Second, 7*limiter.Second + 3, 60 * limiter.Second,
		3600 * limiter.Second, limiter.MaxWindow - 1, limiter.MaxWindow,
	}
	edgeLimits = []int64{1, 2, 3, 10, 60, 1000, 1<<32 - 1, 1 << 32, limiter.MaxLimit - 1, limiter.MaxLimit}
	edgeStarts = []limiter.Instant{0, 1, 1<<32 - 1, 1_790_000_000_123_456, limiter.MaxInstant - 1000, limiter.MaxInstant}
)

// below returns a number from 0 up to n, without n.
func (d Dice) below(n int64) int64 { return int64(d() % uint64(n)) }

func (d Dice) one(n int64) bool { return d.below(n) == 0 }

func oneOf[T any](d Dice, list []T) T { return list[d.below(int64(len(list)))] }

// near returns an instant at most two seconds or two days from now.
func (d Dice) near(now limiter.Instant) limiter.Instant {
	span := oneOf(d, []int64{2, 2_000_000, 172_800_000_000})
	return min(max(0, now+limiter.Instant(d.below(2*span)-span)), limiter.MaxInstant)
}

// later moves the clock: not at all, a little, to an edge of a window or of a
// lifetime, or back.
func (d Dice) later(now limiter.Instant, p limiter.Params) limiter.Instant {
	length := limiter.Instant(oneOf(d, p.Rates).Window)
	switch d.below(16) {
	case 0, 1, 2, 3, 4:
	case 5, 6:
		now += limiter.Instant(d.below(int64(length)))
	case 7, 8, 9:
		now += limiter.Instant(d.below(1 + int64(length)/10))
	case 10, 11:
		now += length - now%length + limiter.Instant(d.below(3)) - 1
	case 12, 13:
		now += limiter.Instant(p.Lifetime) + limiter.Instant(d.below(3)) - 1
	case 14:
		now += length + limiter.Instant(p.Lifetime) + limiter.Instant(d.below(3)) - 1
	case 15:
		now = d.near(now)
	}
	return min(max(0, now), limiter.MaxInstant)
}

// edit returns the parameters of the next call, mostly the same.
func (d Dice) edit(p limiter.Params) limiter.Params {
	switch d.below(16) {
	case 0:
		return d.params(min(p.Generation+1, limiter.MaxGeneration))
	case 1:
		p.Generation = max(p.Generation, limiter.MaxGeneration-2*d.below(2)) // stays or nears the end
	case 2:
		return d.params(p.Generation) // what no holder should send: an edit in the same generation
	case 3: // only a limit changes
		next := p
		next.Generation = min(p.Generation+1, limiter.MaxGeneration)
		next.Rates = slices.Clone(p.Rates)
		next.Rates[d.below(int64(len(p.Rates)))].Limit = oneOf(d, edgeLimits)
		if next.Validate() == nil {
			return next
		}
	}
	return p
}

// params returns valid parameters.
func (d Dice) params(generation int64) limiter.Params {
	for range 50 {
		p := limiter.Params{
			Algorithm:  limiter.Algorithm(d.below(int64(limiter.LeakyBucket) + 1)),
			Generation: generation,
			Any:        d.one(4),
		}
		d.rates(&p)
		switch p.Algorithm {
		case limiter.FixedWindow:
			if d.one(2) {
				p.Rates, p.Any, p.Fairness = p.Rates[:1], false, d.fairness()
			}
		case limiter.SlidingWindow:
			p.Buckets, p.Lifetime = oneOf(d, []int64{1, 2, 7, 10, limiter.MaxBuckets}), d.length()
		case limiter.LeakyBucket:
			p.MaxDelay, p.Rates = d.length(), p.Rates[:1]
		default:
			p.Lifetime = d.length()
		}
		if d.one(16) {
			p.Since = d.near(oneOf(d, edgeStarts))
		}
		if p.Validate() == nil {
			return p
		}
	}
	return limiter.Params{Generation: generation, Rates: []limiter.Rate{{Limit: 3, Window: limiter.Second}}}
}

// length returns how long a grant may live or wait, often 0.
func (d Dice) length() limiter.Micros {
	return oneOf(d, []limiter.Micros{0, 0, 1, 50_000, 100_000, limiter.Second, 7*limiter.Second + 1, 3600 * limiter.Second, limiter.MaxWindow})
}

func (d Dice) rates(p *limiter.Params) {
	first := d.below(int64(len(edgeLengths)))
	for i := range 1 + d.below(limiter.MaxRates)*d.below(2) {
		r := limiter.Rate{Limit: oneOf(d, edgeLimits), Window: edgeLengths[(first+i)%int64(len(edgeLengths))]}
		switch {
		case p.Algorithm == limiter.TokenBucket || p.Algorithm == limiter.GCRA:
			r.Burst = oneOf(d, []int64{0, 1, 2, 10, 1000, limiter.MaxLimit})
		case p.Algorithm.WindowCoupled() && d.one(4):
			r.Offset = oneOf(d, []limiter.Micros{1, -1, 3600 * limiter.Second, limiter.MaxOffset, -limiter.MaxOffset})
		}
		if p.Algorithm.WindowCoupled() && d.one(8) {
			r.Window, r.Monthly = limiter.MaxWindow, true
		}
		p.Rates = append(p.Rates, r)
	}
}

// edgeTenants are distinguished by name; the last five are never declared.
var edgeTenants = []string{"", "a", "b", "c", "d", "e", "f", "*", "a name that is longer than thirty-one bytes", "z"}

func (d Dice) fairness() limiter.Fairness {
	f := limiter.Fairness{Default: oneOf(d, []int64{1, 1, 2, limiter.MaxWeight}), Reserve: d.one(2)}
	for _, name := range edgeTenants[:5] {
		if d.one(2) {
			f.Weights = append(f.Weights, limiter.Weight{Tenant: name, Weight: oneOf(d, []int64{1, 2, 3, limiter.MaxWeight})})
		}
	}
	return f
}

func (d Dice) command(p limiter.Params, grants []grant) limiter.Command {
	low := d.amount(p)
	take := limiter.Command{
		Min: low, Want: low + oneOf(d, []int64{0, 1, 7, 1000, 1 << 40, 1<<62 - 1}),
		First: d.one(3), Tenant: oneOf(d, edgeTenants),
	}
	switch d.below(16) {
	case 0, 1, 2:
		return d.giveBack(limiter.Command{Op: limiter.Return, Want: low, Tenant: take.Tenant}, grants)
	case 3:
		take.Op = limiter.Peek
	case 4:
		if d.one(4) {
			return limiter.Command{Op: limiter.Reset}
		}
	}
	return take
}

// amount returns a number of units, mostly one that makes a difference to a limit of p.
func (d Dice) amount(p limiter.Params) int64 {
	limit := oneOf(d, p.Rates).Limit
	huge := oneOf(d, []int64{limit + 1, 1 << 33, 1<<53 - 1, 1 << 62})
	return oneOf(d, []int64{1, 1, 1, 1, 2, 5, 1 + limit/3, 1 + limit/3, 1 + limit/2, limit, limit, huge})
}

// giveBack makes c return some of a grant, or units that were not granted.
func (d Dice) giveBack(c limiter.Command, grants []grant) limiter.Command {
	if len(grants) == 0 {
		return c
	}
	g := grants[len(grants)-1-int(d.below(min(3, int64(len(grants)))))]
	c.Windows, c.At, c.Tenant = g.Windows, g.Now, g.tenant
	switch d.below(8) {
	case 0:
		c.Windows.Open[d.below(limiter.MaxRates)].Index--
	case 1:
		c.At += limiter.Instant(d.below(3)) - 1
	case 2:
	default:
		c.Want = oneOf(d, []int64{g.Granted, 1 + g.Granted/2, 1})
	}
	return c
}
