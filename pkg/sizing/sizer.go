package sizing

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// The weights and steps of the rules.
const (
	roundTrip = 6.0 // cost of asking the store once
	strand    = 1.0 // cost of a unit that nobody spends

	// contention is the further cost of a stranded unit, in strands, in a window
	// that refused: it is missing elsewhere.
	contention = 2.0
	// memory is the number of windows after which what was learned counts less.
	memory = 256
	// smoothing is the weight of the latest window in the forecast.
	smoothing = 0.5
	// eagerness is the rate at which the better of two experts wins.
	eagerness = 1.0
	// mostDebt bounds by how much one expert falls behind, in thousandths, so that it
	// catches up when the demand changes its nature.
	mostDebt = 16_000

	// plenty and scarce are by how many roots of the expected demand a lease exceeds
	// it, when much of the limit is left over and when little is.
	plenty, scarce = 0.8, -1.0
	// A limit with less than one part in tight left is scarce; it is not when that
	// much is left in that part of a window. relief answers of the latter kind
	// outweigh many of the former.
	tight, relief = 4, 8

	// A lease that brings little makes the pause longer by stepsUp, one that brings
	// enough shortens it by stepsDown. It grows from shortestPause nanoseconds.
	stepsUp, stepsDown = 3, 1
	shortestPause      = 0.5e6
)

// MostDemand is what is counted of the demand of one window, at most.
const MostDemand = 1e13

// A Rule says how sizes are learned. It is the same for all that a limiter or a region
// leases.
type Rule struct {
	// Low and High bound a size, 1 <= Low <= High. High is at most the limit, which
	// no lease can exceed.
	Low, High int64
	// Start is the size before anything was learned.
	Start int64
	// Predictive makes the size follow a forecast as far as forecasts prove right.
	Predictive bool
	// Part is the lifetime of time-coupled credits as part of a window, 0 for credits
	// that live as long as their window.
	Part float64
	// LongestPause bounds the pause between two leases, in nanoseconds.
	LongestPause int64
}

// A Sizer is what has been learned of one counter. The zero value has learned nothing.
// It is a value of 16 bytes: its holder guards it.
//
//	s := Sizer{}
//	want := z.Lease(s, life)         // for each lease
//	s = z.Heard(s, want, r, life)    // for each answer
//	pause := z.Pause(s)              // after a time-coupled answer that was short
//	s = z.Observe(s, offered)        // once a window, when it is over
//
// life is the part of the longest time that credits may live for which those of the
// lease will: what is left of the window, or 1 when they are time-coupled.
//
// offered is the cost of all requests of the window, refused ones included: what is
// served would say of a counter without credits that nobody asks for any. A window
// that is not observed changes nothing, so a counter that is idle keeps its size.
type Sizer struct {
	log      float32 // natural logarithm of the size
	squares  float32 // sum of the squared gradients, 0 before the first; fades
	forecast float32 // of the demand in the lifetime of a lease
	debt     int16   // by how much the forecast's sizes cost more than the learned ones, see judge
	scarcity uint8   // how little of the limit is left over of late, 255 for nothing
	steps    uint8   // length of the pause, see Pause
}

// Forecast returns how much demand is expected in the lifetime of a lease, 0 before
// anything was learned.
func (s Sizer) Forecast() float64 { return float64(s.forecast) }

// Scarce reports whether little of the limit was left in most of the latest answers.
func (s Sizer) Scarce() bool { return s.scarcity > math.MaxUint8/2 }

// Lease returns what the next lease asks for, between Low and High.
//
// Units are useful only when they are asked for while they live. So the most is the
// number that is asked for with a probability that balances the costs of a round trip
// and of a stranded unit (the newsvendor's; Arrow, Harris and Marschak 1951). The
// number of requests varies by about the root of its mean.
func (z Rule) Lease(s Sizer, life float64) int64 {
	size := z.Size(s)
	if !(s.forecast > 0) || s.squares == 0 {
		return size
	}
	mean := float64(s.forecast) * max(0, min(1, life))
	scarcity := float64(s.scarcity) / math.MaxUint8
	most := mean + (plenty-(plenty-scarce)*scarcity)*math.Sqrt(mean)
	return int64(math.Round(z.clamp(min(float64(size), most))))
}

// Size returns the size that balances a lifetime, between Low and High.
func (z Rule) Size(s Sizer) int64 {
	b := z.learned(s)
	if z.Predictive && s.forecast > 0 {
		b = blend(s.debt, z.follow(float64(s.forecast)), b)
	}
	return int64(math.Round(z.clamp(b)))
}

// Observe learns from a window in which requests of the given cost were made. The
// size at most doubles or halves, or nearly so.
func (z Rule) Observe(s Sizer, offered int64) Sizer {
	if offered < 1 {
		return s
	}
	demand := min(float64(offered), MostDemand)
	if z.Part > 0 {
		demand *= z.Part
	}
	least := leastCost(demand)
	if f := float64(s.forecast); f > 0 {
		s.judge((windowCost(z.follow(f), demand) - windowCost(z.learned(s), demand)) / least)
		s.forecast += float32(smoothing * (demand - f))
	} else {
		s.forecast = float32(demand)
	}
	b := z.learned(s)
	z.descend(&s, strand*b/2-roundTrip*demand/b, least)
	return s
}

// Heard learns from the answer to a lease of want.
func (z Rule) Heard(s Sizer, want int64, r limiter.Result, life float64) Sizer {
	if r.Reason == limiter.Exhausted {
		s = z.refused(s)
	}
	switch {
	case r.Remaining < r.Limit/tight:
		s.scarcity += (math.MaxUint8 - s.scarcity) / 2
	case z.Part > 0 || life < 1.0/tight:
		s.scarcity -= s.scarcity / relief
	}
	if Short(want, r) {
		s.steps += min(stepsUp, math.MaxUint8-s.steps)
	} else {
		s.steps -= min(stepsDown, s.steps)
	}
	return s
}

// refused learns that the store had less left than a request needed.
func (z Rule) refused(s Sizer) Sizer {
	const dearer = contention * strand / 2
	b := z.learned(s)
	if f := float64(s.forecast); f > 0 {
		s.judge(dearer * (z.follow(f) - b) / leastCost(f))
	}
	z.descend(&s, dearer*b, dearer*b)
	return s
}

// Short reports whether an answer brought less than half of what was wanted.
func Short(want int64, r limiter.Result) bool { return 2*r.Granted < want }

// Pause returns how long to wait for the next lease when the last was short, in
// nanoseconds. Where credits come back bit by bit, a fleet that
// asks as soon as a unit is there asks for every unit. Pauses double until a lease
// brings what it is meant to (multiplicative increase and decrease, in steps of a
// third of an octave).
func (z Rule) Pause(s Sizer) int64 {
	if s.steps == 0 {
		return 0
	}
	return int64(min(float64(z.LongestPause), shortestPause*math.Exp2(float64(s.steps)/stepsUp)))
}

// descend takes a step against the gradient of the cost in the logarithm of the
// size, where the cost is convex. The step is AdaGrad's (Duchi, Hazan and Singer
// 2011), with three changes. The sum of squares is at least the square of the scale
// of the costs, and a gradient counts no more than the root of the sum: so a step
// is at most 1/√2, where AdaGrad's first goes all the way that it may. Only a
// logarithmic number of gradients is cut, so the regret remains O(√T). And the sum
// fades, so that a demand that changes after long is followed, too.
func (z Rule) descend(s *Sizer, gradient, scale float64) {
	log := math.Log(z.learned(*s))
	squares := float64(s.squares)
	if !(squares >= 0 && squares <= math.MaxFloat32/2) {
		squares = 0
	}
	squares = max(squares*(1-1.0/memory), scale*scale)
	root := math.Sqrt(squares)
	gradient = max(-root, min(root, gradient))
	squares += gradient * gradient
	s.squares = float32(squares)
	s.log = float32(math.Log(z.clamp(math.Exp(log - gradient/math.Sqrt(squares)))))
}

// judge notes by how much the size of the forecast cost more than the learned one,
// in parts of the least cost of a window. Thousandths are counted.
func (s *Sizer) judge(more float64) {
	s.debt = int16(max(-mostDebt, min(mostDebt, float64(s.debt)+math.Round(1000*more))))
}

// blend returns the mean of two experts' sizes, weighted by Hedge (Freund and
// Schapire 1997): what an expert cost lowers its weight exponentially.
func blend(debt int16, follow, learned float64) float64 {
	weight := 1 / (1 + math.Exp(eagerness*float64(debt)/1000))
	return weight*follow + (1-weight)*learned
}

// learned returns the size by the gradients alone.
func (z Rule) learned(s Sizer) float64 {
	if s.squares == 0 {
		return z.clamp(float64(z.Start))
	}
	return z.clamp(math.Exp(float64(s.log)))
}

// follow returns the best size for a demand that is known.
func (z Rule) follow(demand float64) float64 { return z.clamp(bestSize(demand)) }

// clamp keeps a size within its bounds, whatever it is.
func (z Rule) clamp(b float64) float64 {
	if !(b > float64(z.Low)) {
		return float64(z.Low)
	}
	return min(b, float64(z.High))
}

func bestSize(demand float64) float64         { return math.Sqrt(2 * roundTrip * demand / strand) }
func leastCost(demand float64) float64        { return math.Sqrt(2 * roundTrip * strand * demand) }
func windowCost(size, demand float64) float64 { return roundTrip*demand/size + strand*size/2 }
