package redis

import (
	"fmt"
	"strconv"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A timeline is a sequence of calls for one key, chosen at random, and what Step
// makes of them.
type timeline struct {
	since  limiter.Instant // of the store's memory
	latest limiter.Instant // of the guard before the first call
	calls  []call
	hash   map[string]string // the counter after the last call
}

// A call is one command and the result Step gives.
type call struct {
	evicted bool // the guard lost its newest instant before the call
	now     limiter.Instant
	params  limiter.Params
	command limiter.Command
	want    limiter.Result
}

// Values at which integers of either language could part.
var (
	edgeLengths = []limiter.Micros{
		limiter.MinWindow, limiter.MinWindow + 1, limiter.Second, 7*limiter.Second + 3,
		3600 * limiter.Second, limiter.MaxWindow - 1, limiter.MaxWindow,
	}
	edgeLimits = []int64{1, 2, 3, 10, 1000, 1<<32 - 1, 1 << 32, limiter.MaxLimit - 1, limiter.MaxLimit}
	edgeStarts = []limiter.Instant{0, 1, 1<<32 - 1, 1_790_000_000_123_456, lastInstant - 1000, lastInstant}
)

// lastInstant is the end of the range in which every sum is exact, in 2255.
const lastInstant = limiter.Instant(1<<53) - 2*limiter.Instant(limiter.MaxWindow) - 1

// A dice yields the choices that make a timeline.
type dice func() uint64

// below returns a number from 0 up to n, without n.
func (d dice) below(n int64) int64 { return int64(d() % uint64(n)) }

func oneOf[T any](d dice, list []T) T { return list[d.below(int64(len(list)))] }

// roll makes a timeline of n calls.
func (d dice) roll(n int) timeline {
	now := oneOf(d, edgeStarts)
	l := timeline{since: d.near(now), latest: d.near(now)}
	memory := limiter.Memory{Since: l.since, Latest: l.latest}
	params := limiter.Params{Generation: d.below(3), Rates: d.rates()}
	var state limiter.State
	var kept limiter.Micros
	var grant limiter.Windows
	for range n {
		now = d.later(now, params.Rates)
		params = d.edit(params)
		c := call{now: now, params: params, command: d.command(grant)}
		if d.below(16) == 0 {
			c.params.Generation = max(0, params.Generation-1) // a holder that is behind
		}
		if d.below(16) == 0 {
			c.evicted, memory.Latest = true, 0
		}
		before, withMemory := state, c.command
		withMemory.Memory = memory
		state, c.want = c.params.Step(state, now, withMemory)
		if layout(before) != layout(state) {
			memory.Latest, kept = now, state.KeepFor(now)
		}
		if c.want.Granted > 0 {
			grant = c.want.Windows
		}
		l.calls = append(l.calls, c)
	}
	l.hash = fields(state, kept)
	return l
}

// near returns an instant at most two seconds or two days from now.
func (d dice) near(now limiter.Instant) limiter.Instant {
	span := oneOf(d, []int64{2, 2_000_000, 172_800_000_000})
	return min(max(0, now+limiter.Instant(d.below(2*span)-span)), lastInstant)
}

// later moves the clock: not at all, a little, to an edge of a window, or back.
func (d dice) later(now limiter.Instant, rates []limiter.Rate) limiter.Instant {
	length := limiter.Instant(oneOf(d, rates).Window)
	switch d.below(8) {
	case 0, 1, 2:
	case 3, 4:
		now += limiter.Instant(d.below(int64(length)))
	case 5, 6:
		now += length - now%length + limiter.Instant(d.below(3)) - 1
	case 7:
		now = d.near(now)
	}
	return min(max(0, now), lastInstant)
}

// edit returns the parameters of the next call, mostly the same.
func (d dice) edit(p limiter.Params) limiter.Params {
	switch d.below(12) {
	case 0:
		p.Generation, p.Rates = min(p.Generation+1, limiter.MaxGeneration), d.rates()
	case 1:
		p.Generation = max(p.Generation, limiter.MaxGeneration-2*d.below(2)) // stays or nears the end
	case 2:
		p.Rates = d.rates() // what no holder should send: an edit in the same generation
	}
	return p
}

func (d dice) rates() []limiter.Rate {
	var rates []limiter.Rate
	first := d.below(int64(len(edgeLengths)))
	for i := range 1 + d.below(limiter.MaxRates) {
		length := edgeLengths[(first+i)%int64(len(edgeLengths))]
		rates = append(rates, limiter.Rate{Limit: oneOf(d, edgeLimits), Window: length})
	}
	return rates
}

func (d dice) command(grant limiter.Windows) limiter.Command {
	low := oneOf(d, []int64{1, 1, 1, 2, 5, 1 << 33, 1<<53 - 1, 1 << 62})
	if d.below(4) > 0 {
		return limiter.Command{Min: low, Want: low + oneOf(d, []int64{0, 1, 7, 1000, 1 << 40, 1<<62 - 1})}
	}
	if d.below(4) == 0 {
		grant.Open[d.below(limiter.MaxRates)].Index--
	}
	return limiter.Command{Op: limiter.Return, Want: low, Windows: grant}
}

// layout is a state without its counts: what a call must write whole.
func layout(s limiter.State) limiter.State {
	for i := range s.Slice() {
		s.Open[i].Granted = 0
	}
	return s
}

// fields returns the hash that holds s; none for a key never served.
func fields(s limiter.State, kept limiter.Micros) map[string]string {
	hash := map[string]string{}
	if s.N == 0 {
		return hash
	}
	set := func(name string, v int64) { hash[name] = strconv.FormatInt(v, 10) }
	set("v", 1)
	set("g", s.Generation)
	set("n", int64(s.N))
	set("keep", int64(kept))
	for i, w := range s.Slice() {
		set(fmt.Sprintf("l%d", i+1), w.Limit)
		set(fmt.Sprintf("w%d", i+1), int64(w.Window))
		set(fmt.Sprintf("x%d", i+1), w.Index)
		set(fmt.Sprintf("u%d", i+1), w.Granted)
	}
	return hash
}
