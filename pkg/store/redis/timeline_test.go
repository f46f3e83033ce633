package redis

import (
	"github.com/weir-dev/weir/pkg/limiter"
)

// A timeline is a sequence of calls for one key, chosen at random, and what Step
// makes of them.
type timeline struct {
	memory limiter.Memory // of the store before the first call
	calls  []call
	end    counter
}

// A call is one command and the result Step gives.
type call struct {
	evicted bool // the guard lost its newest instant before the call
	now     limiter.Instant
	params  limiter.Params
	command limiter.Command
	was     limiter.Algorithm // of the state before
	want    limiter.Result
}

// A grant is what a holder may still return.
type grant struct {
	limiter.Result
	tenant string
}

// A counter is what a store holds of one key, by the rules of lua/step.lua.
type counter struct {
	state  limiter.State
	kept   int64           // until when, in milliseconds
	latest limiter.Instant // of the guard
}

// apply runs a call as the store does.
func (c *counter) apply(now limiter.Instant, p limiter.Params, cmd limiter.Command) limiter.Result {
	cmd.Memory.Latest = c.latest
	next, res := p.Step(c.state, now, cmd)
	refused := res.Reason == limiter.StaleGeneration || res.Reason == limiter.ClockBehind
	same := layoutOf(next).Equal(layoutOf(c.state))
	switch {
	case refused || cmd.Op == limiter.Peek:
		return res
	case next.Algorithm.WindowCoupled():
		if !same {
			c.latest, c.kept = now, keptUntil(next, now)
		}
	case same && cmd.Op != limiter.Reset && res.Granted == 0:
		return res // the same state, later
	default:
		if now.Sub(c.latest) >= 100*limiter.Millisecond {
			c.latest = now
		}
		c.kept = keptUntil(next, now)
	}
	c.state = next
	return res
}

// keptUntil is in milliseconds, as the server counts.
func keptUntil(s limiter.State, now limiter.Instant) int64 {
	until := int64(now.Add(s.KeepFor(now)))
	return min(until/1000+min(1, until%1000), mostKept)
}

// mostKept is up to when the script counts each millisecond.
const mostKept = limiter.MaxExact / 1000

// layoutOf is a state without its counts: what only an edit or a new window
// changes.
func layoutOf(s limiter.State) limiter.State {
	s.Expires, s.Began, s.Asked, s.Before, s.Tenants = 0, 0, 0, 0, nil
	for i := range s.Slice() {
		m := &s.Meters[i]
		m.Used, m.Log = 0, nil
		if !s.Algorithm.WindowCoupled() {
			m.Index = 0
		}
	}
	return s
}

// Values at which integers of either language could part.
var (
	edgeLengths = []limiter.Micros{
		limiter.MinWindow, limiter.MinWindow + 1, limiter.Second, 7*limiter.Second + 3, 60 * limiter.Second,
		3600 * limiter.Second, limiter.MaxWindow - 1, limiter.MaxWindow,
	}
	edgeLimits = []int64{1, 2, 3, 10, 60, 1000, 1<<32 - 1, 1 << 32, limiter.MaxLimit - 1, limiter.MaxLimit}
	edgeStarts = []limiter.Instant{0, 1, 1<<32 - 1, 1_790_000_000_123_456, lastInstant - 1000, lastInstant}
)

const lastInstant = limiter.MaxInstant

// A dice yields the choices that make a timeline.
type dice func() uint64

// below returns a number from 0 up to n, without n.
func (d dice) below(n int64) int64 { return int64(d() % uint64(n)) }

func (d dice) one(n int64) bool { return d.below(n) == 0 }

func oneOf[T any](d dice, list []T) T { return list[d.below(int64(len(list)))] }

// roll makes a timeline of n calls.
func (d dice) roll(n int) timeline {
	now := oneOf(d, edgeStarts)
	params := d.params(d.below(3))
	l := timeline{memory: limiter.Memory{Since: d.near(now), Latest: d.near(now)}}
	if !d.one(4) {
		l.memory = limiter.Memory{Since: max(0, now-limiter.Instant(limiter.MaxWindow)), Latest: 0}
	}
	l.end.latest = l.memory.Latest
	var grants []grant
	for range n {
		now = d.later(now, params)
		params = d.edit(params)
		c := call{now: now, params: params, was: l.end.state.Algorithm, command: d.command(params, grants)}
		if d.one(16) {
			c.params.Generation = max(0, params.Generation-1) // a holder that is behind
		}
		if d.one(16) {
			c.evicted, l.end.latest = true, 0
		}
		withMemory := c.command
		withMemory.Memory.Since = l.memory.Since
		c.want = l.end.apply(now, c.params, withMemory)
		if c.want.Granted > 0 && c.command.Op == limiter.Take {
			grants = append(grants, grant{c.want, c.command.Tenant})
		}
		l.calls = append(l.calls, c)
	}
	return l
}

// near returns an instant at most two seconds or two days from now.
func (d dice) near(now limiter.Instant) limiter.Instant {
	span := oneOf(d, []int64{2, 2_000_000, 172_800_000_000})
	return min(max(0, now+limiter.Instant(d.below(2*span)-span)), lastInstant)
}

// later moves the clock: not at all, a little, to an edge of a window or of a
// lifetime, or back.
func (d dice) later(now limiter.Instant, p limiter.Params) limiter.Instant {
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
	return min(max(0, now), lastInstant)
}

// edit returns the parameters of the next call, mostly the same.
func (d dice) edit(p limiter.Params) limiter.Params {
	switch d.below(16) {
	case 0:
		return d.params(min(p.Generation+1, limiter.MaxGeneration))
	case 1:
		p.Generation = max(p.Generation, limiter.MaxGeneration-2*d.below(2)) // stays or nears the end
	case 2:
		return d.params(p.Generation) // what no holder should send: an edit in the same generation
	case 3:
		// Only a limit changes.
		next := p
		next.Generation = min(p.Generation+1, limiter.MaxGeneration)
		next.Rates = append([]limiter.Rate(nil), p.Rates...)
		next.Rates[d.below(int64(len(p.Rates)))].Limit = oneOf(d, edgeLimits)
		if next.Validate() == nil {
			return next
		}
	}
	return p
}

// params returns valid parameters.
func (d dice) params(generation int64) limiter.Params {
	for range 50 {
		p := limiter.Params{
			Algorithm:  limiter.Algorithm(d.below(int64(limiter.LeakyBucket) + 1)),
			Generation: generation,
			Any:        d.one(4),
		}
		d.rates(&p)
		if p.Algorithm == limiter.SlidingWindow {
			p.Buckets = oneOf(d, []int64{1, 2, 7, 10, limiter.MaxBuckets})
		}
		if p.Algorithm == limiter.LeakyBucket {
			p.MaxDelay, p.Rates = d.length(), p.Rates[:1]
		}
		if !p.Algorithm.WindowCoupled() && p.Algorithm != limiter.LeakyBucket {
			p.Lifetime = d.length()
		}
		if d.one(16) {
			p.Since = d.near(oneOf(d, edgeStarts))
		}
		if p.Algorithm.WindowCoupled() && d.one(2) {
			p.Rates, p.Any, p.Fairness = p.Rates[:1], false, d.fairness()
		}
		if p.Validate() == nil {
			return p
		}
	}
	return limiter.Params{Generation: generation, Rates: []limiter.Rate{{Limit: 3, Window: limiter.Second}}}
}

// length returns how long a grant may live or wait, often 0.
func (d dice) length() limiter.Micros {
	return oneOf(d, []limiter.Micros{0, 0, 1, 50_000, 100_000, limiter.Second, 7*limiter.Second + 1, 3600 * limiter.Second, limiter.MaxWindow})
}

func (d dice) rates(p *limiter.Params) {
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

// tenants are told apart by name; "e" to "z" are never declared.
var tenants = []string{"", "a", "b", "c", "d", "e", "f", "*", "a name that is longer than thirty-one bytes", "z"}

func (d dice) fairness() limiter.Fairness {
	f := limiter.Fairness{Default: oneOf(d, []int64{1, 1, 2, limiter.MaxWeight})}
	for _, name := range tenants[:5] {
		if d.one(2) {
			f.Weights = append(f.Weights, limiter.Weight{Tenant: name, Weight: oneOf(d, []int64{1, 2, 3, limiter.MaxWeight})})
		}
	}
	return f
}

func (d dice) command(p limiter.Params, grants []grant) limiter.Command {
	low := d.amount(p)
	take := limiter.Command{Min: low, Want: low + oneOf(d, []int64{0, 1, 7, 1000, 1 << 40, 1<<62 - 1}), First: d.one(3)}
	if p.Fairness.Default > 0 {
		take.Tenant = oneOf(d, tenants)
	}
	switch d.below(16) {
	case 0, 1, 2:
		c := d.giveBack(low, grants)
		if c.Tenant == "" {
			c.Tenant = take.Tenant
		}
		return c
	case 3:
		take.Op = limiter.Peek
	case 4:
		if d.one(4) {
			return limiter.Command{Op: limiter.Reset}
		}
	}
	return take
}

// amount returns a number of units, mostly one that a limit of p can tell.
func (d dice) amount(p limiter.Params) int64 {
	limit := oneOf(d, p.Rates).Limit
	huge := oneOf(d, []int64{limit + 1, 1 << 33, 1<<53 - 1, 1 << 62})
	return oneOf(d, []int64{1, 1, 1, 1, 2, 5, 1 + limit/3, 1 + limit/3, 1 + limit/2, limit, limit, huge})
}

// giveBack returns some of a grant, or of what was none.
func (d dice) giveBack(amount int64, grants []grant) limiter.Command {
	c := limiter.Command{Op: limiter.Return, Want: amount}
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
