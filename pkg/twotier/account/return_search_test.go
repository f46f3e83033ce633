package account

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// The search plays every change of leader of a small fleet, as the store and the local
// shares are in production: when the leader before stops, when the next begins, when each
// holder comes back, for how long the busy leader then answers none of its takes, whether it is
// cut off again, and from when on it takes all that it can get. In every order, the fleet
// admits no more than the algorithm promises.

const (
	returnWindow = 100 * limiter.Millisecond
	returnTick   = returnWindow / 4
	returnTicks  = 24 // of one run
)

// A comeback is one run.
type comeback struct {
	limiter.Params
	reported []int64 // the number of holders that was reported to each
	stops    int     // tick from which on the leader before serves nothing
	leads    int     // tick from which on the next one serves
	back     []int   // tick at which each holder is back, returnTicks for never
	asks     []int   // tick from which on each asks
	mute     int     // ticks for which the first holder is not answered when it is back
	parts    int     // tick at which the first holder is cut off again, returnTicks for never
	crash    bool    // nothing is handed over
	last     bool    // the holders ask in the other order
	without
}

// without are the rules that are not kept.
type without struct {
	absences bool // what the absent have is granted, too
	end      bool // a holder that is not back is taken to be gone
	window   bool // a holder has its part in the window in which it comes back
	loss     bool // a holder begins the window in which it was cut off
	promise  bool // a holder begins a window by itself that it promised not to begin
	lapse    bool // a holder has its part in a window that it did not promise not to begin
}

// returnPromise is for how many ticks a holder that is back promises to begin no window by
// itself, each tick.
const returnPromise = 3

func (c *comeback) at(tick int) limiter.Instant {
	return limiter.Instant(1000*returnWindow) + limiter.Instant(tick)*limiter.Instant(returnTick)
}

// own returns the instant by a holder's own clock.
func (c *comeback) own(tick int) int64 { return int64(c.at(tick))*int64(time.Microsecond) + 37e6 }

// promised returns until which tick the holder promised by then to begin no window by
// itself, 0 for not at all.
func (c *comeback) promised(i, tick int) int {
	if c.back[i] > tick {
		return 0
	}
	return min(tick, c.until(i)-1) + returnPromise
}

// until returns the tick at which the way to the leader is lost, that the holder has when it
// is back.
func (c *comeback) until(i int) int {
	if i == 0 {
		return c.parts
	}
	return returnTicks
}

// answered reports whether the leader answers the holder. When it comes back, its share is
// spent just before.
func (c *comeback) answered(i, tick int, spent bool) bool {
	quiet := 0
	if i == 0 {
		quiet = c.mute
	}
	switch back := c.back[i]; {
	case tick < c.stops:
		return true
	case tick == back && !spent:
		return false
	default:
		return tick >= back+quiet && tick < c.until(i)
	}
}

// memory is that of the leader at the tick.
func (c *comeback) memory(tick int) limiter.Memory {
	if tick < c.stops {
		return limiter.Memory{}
	}
	m := limiter.Memory{Gaps: []limiter.Gap{{From: c.at(c.stops), To: c.at(c.leads)}}}
	if c.crash {
		m = limiter.Memory{Since: c.at(c.leads)}
	}
	a := limiter.Absence{From: c.at(c.leads), Until: limiter.MaxInstant}
	for i, of := range c.reported {
		if c.back[i] > tick {
			continue
		}
		at := c.at(c.back[i])
		if c.window {
			at -= limiter.Instant(returnWindow)
		}
		a.Back = append(a.Back, limiter.Shares{Of: of, At: []limiter.Instant{at}})
		if over := c.promised(i, tick); over <= tick && !c.lapse {
			a.Lapse = append(a.Lapse, limiter.Shares{Of: of, At: []limiter.Instant{c.at(over)}})
		}
	}
	switch latest := slices.Max(c.back); {
	case c.end:
		a.Until = c.at(min(latest, c.leads+1))
	case latest > tick:
	case c.mute == 0 && c.parts == returnTicks:
		a.Until = c.at(latest)
	default:
		a.Whole = c.at(latest) // the leader goes on to ask for promises
	}
	if !c.absences {
		m.Absences = []limiter.Absence{a}
	}
	return m
}

// run returns what was admitted in each tick.
func (c *comeback) run() (admitted [returnTicks]int64) {
	var state limiter.State
	type side struct {
		LocalShare
		ClockOffset
		seen limiter.Instant
	}
	sides := make([]side, len(c.reported))
	for i := range sides {
		sides[i].seen = NeverSeen
	}
	for tick := range returnTicks {
		now, local := c.at(tick), c.own(tick)
		if c.crash && tick == c.leads {
			state = limiter.State{}
		}
		memory := c.memory(tick)
	sides:
		for turn := range sides {
			i := turn
			if c.last {
				i = len(sides) - 1 - turn
			}
			if c.asks[i] > tick {
				continue
			}
			s := &sides[i]
			spent := false // a holder that comes back has done so on its share just before
			for range c.Rates[0].Limit + 2 {
				if c.answered(i, tick, spent) && !s.Covers(s.ClockOffset, local) {
					var res limiter.Result
					state, res = c.Step(state, now, limiter.Command{Op: limiter.Take, Min: 1, Want: 1, Memory: memory})
					s.ClockOffset, s.seen = s.Observe(local, local, now), now
					if res.Granted == 0 {
						break
					}
					admitted[tick]++
					continue
				}
				v := StoreTime{Clock: s.ClockOffset, Seen: s.seen, Swapped: Past}
				switch {
				case c.loss:
				case tick >= c.until(i):
					v.Swapped = c.own(c.until(i)) - 1
				default:
					v.Swapped = c.own(c.stops) - 1
				}
				if until := c.promised(i, tick); until > 0 && !c.promise && (spent || tick > c.back[i]) {
					v.Promised = Promise{c.at(until), c.own(until)}
				}
				var res LocalDecision
				s.LocalShare, res = s.Admit(c.Params, c.reported[i], v, local, 1)
				switch {
				case res.Allowed:
					admitted[tick]++
				case tick == c.back[i] && !spent:
					spent = true
				default:
					continue sides
				}
			}
		}
	}
	return admitted
}

// excess returns by how much more was admitted than is promised, at most.
func (c *comeback) excess(admitted [returnTicks]int64) int64 {
	worst, r := int64(math.MinInt64), c.Rates[0]
	for from := range returnTicks {
		var sum int64
		for to := from; to < returnTicks; to++ {
			sum += admitted[to]
			length := int64(to-from) * int64(returnTick)
			switch c.Algorithm {
			case limiter.FixedWindow:
				if r.WindowAt(c.at(from)).Index == r.WindowAt(c.at(to)).Index {
					worst = max(worst, sum-r.Limit)
				}
			case limiter.SlidingWindow, limiter.SlidingLog:
				if length < int64(r.Window) {
					worst = max(worst, sum-r.Limit)
				}
			case limiter.LeakyBucket:
				worst = max(worst, sum-1-(int64(c.MaxDelay)+length)*r.Limit/int64(r.Window))
			default:
				worst = max(worst, sum-r.Burst-length*r.Limit/int64(r.Window))
			}
		}
	}
	return worst
}

// worstComeback returns the run that admits most over the promise.
func worstComeback(p limiter.Params, reported []int64, rules without) (worst comeback, excess int64, runs int) {
	excess = math.MinInt64
	n := len(reported)
	for _, crash := range []bool{false, true} {
		for stops := 2; stops < 6; stops++ {
			for _, pause := range []int{0, 3} {
				leads := stops + pause
				backs := []int{leads, leads + 1, leads + 3, leads + 6, returnTicks}
				asks := []int{0, stops, leads + 3}
				choices := make([]int, 2*n)
				for {
					c := comeback{Params: p, reported: reported, stops: stops, leads: leads, crash: crash, without: rules}
					for i := range n {
						c.back, c.asks = append(c.back, backs[choices[i]]), append(c.asks, asks[choices[n+i]])
					}
					for _, ways := range [][2]int{{0, returnTicks}, {5, returnTicks}, {2, c.back[0] + 4}} {
						c.mute, c.parts = ways[0], min(ways[1], returnTicks)
						for _, c.last = range []bool{false, true} {
							runs++
							if over := c.excess(c.run()); over > excess {
								worst, excess = c, over
							}
						}
					}
					if !next(choices, len(backs), len(asks)) {
						break
					}
				}
			}
		}
	}
	return worst, excess, runs
}

// next counts one further, the first half of the digits up to a and the others up to b.
func next(digits []int, a, b int) bool {
	for i := range digits {
		base := a
		if i >= len(digits)/2 {
			base = b
		}
		if digits[i]++; digits[i] < base {
			return true
		}
		digits[i] = 0
	}
	return false
}

func (c *comeback) String() string {
	return fmt.Sprintf("%v: reported %v, the leader stops at %d, the next begins at %d (crash: %t), back at %v, the first not answered for %d ticks and away again from %d, asking from %v: %v",
		c.Algorithm, c.reported, c.stops, c.leads, c.crash, c.back, c.mute, c.parts, c.asks, c.run())
}

var comebacks = map[string]limiter.Params{
	"fixed window":   {Rates: []limiter.Rate{{Limit: 12, Window: returnWindow}}},
	"sliding window": {Algorithm: limiter.SlidingWindow, Buckets: 4, Rates: []limiter.Rate{{Limit: 12, Window: returnWindow}}},
	"sliding log":    {Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{{Limit: 12, Window: returnWindow}}},
	"token bucket":   {Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{{Limit: 12, Window: returnWindow, Burst: 12}}},
	"small burst":    {Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{{Limit: 12, Window: returnWindow, Burst: 8}}},
	"leaky bucket":   {Algorithm: limiter.LeakyBucket, MaxDelay: 2 * returnTick, Rates: []limiter.Rate{{Limit: 12, Window: returnWindow}}},
}

func TestNoOrderOfComingBackAdmitsMore(t *testing.T) {
	for name, p := range comebacks {
		for _, reported := range [][]int64{{2, 2}, {2, 3}} {
			t.Run(fmt.Sprint(name, reported), func(t *testing.T) {
				t.Parallel()
				if worst, excess, runs := worstComeback(p, reported, without{}); excess > 0 {
					t.Errorf("of %d runs one admits %d too many: %v", runs, excess, &worst)
				} else {
					t.Logf("%d runs, at most %d below the promise", runs, -excess)
				}
			})
		}
	}
}

func TestEachRuleOfComingBackIsNeeded(t *testing.T) {
	for name, rules := range map[string]without{
		"the absent keep their part":          {absences: true},
		"who is not back is not gone":         {end: true},
		"a part is back in the next window":   {window: true},
		"the window of the loss is not begun": {loss: true},
		"a promise is kept":                   {promise: true},
		"who promises nothing has no part":    {lapse: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, excess, runs := worstComeback(comebacks["fixed window"], []int64{2, 2}, rules); excess <= 0 {
				t.Errorf("none of %d runs shows what it is for", runs)
			}
		})
	}
}
