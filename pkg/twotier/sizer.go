package twotier

import "math"

// How much a key leases at once is learned. What a window costs with a size b when
// D units are asked for is the round trips and what is stranded at its end, half a
// lease on average: the economic order quantity of inventory theory (Harris 1913),
//
//	cost(b) = roundTrip·D/b + strand·b/2, least at b* = √(2·roundTrip·D/strand).
//
// Nothing that is learned is trusted. A size is what a lease asks for; what is
// granted, and for how long, the store decides.
const (
	roundTrip = 4.0 // cost of asking the store once
	strand    = 1.0 // cost of a unit that nobody spends

	// contention is the further cost of a stranded unit, in strands, in a window
	// that refused: it is missing elsewhere. Half the size is best then.
	contention = 3.0
	// memory is the number of windows after which what was learned counts less.
	memory = 256
	// smoothing is the weight of the latest window in the forecast.
	smoothing = 0.5
	// eagerness is the rate at which the better of two experts wins.
	eagerness = 1.0
	// mostDebt bounds by how much one expert falls behind, so that it catches up when
	// the demand changes its nature.
	mostDebt = 16.0

	mostDemand = 1e13 // what is counted of the demand of one window
)

// A sizing is the rule by which sizes are learned. It is the same for all keys of a
// limiter.
type sizing struct {
	// low and high bound a size, 1 <= low <= high. high is at most the limit, which
	// no lease can exceed.
	low, high int64
	// start is the size before anything was learned.
	start int64
	// predictive makes the size follow a forecast as far as forecasts prove right.
	predictive bool
}

// A sizer is what has been learned of one key. The zero value has learned nothing.
// It is a value: whoever holds it guards it.
//
//	s := sizer{}
//	want := z.size(s)                // for each lease
//	s = z.refused(s)                 // for each refusal by the store
//	s = z.observe(s, offered)        // once a window (or a lifetime), when it is over
//
// offered is the cost of all requests of the window, refused ones included: what is
// served would say of a key without credits that nobody asks for any. A window
// that is not observed changes nothing, so a key that is idle keeps its size.
type sizer struct {
	log      float32 // natural logarithm of the size
	squares  float32 // sum of the squared gradients, 0 before the first; fades
	forecast float32 // of the demand of a window
	debt     float32 // by how much the forecast's sizes have cost more than the learned ones
}

// size returns the size of the next lease, between low and high.
func (z sizing) size(s sizer) int64 {
	b := z.learned(s)
	if z.predictive && s.forecast > 0 {
		b = blend(s.debt, z.follow(float64(s.forecast)), b)
	}
	return int64(math.Round(z.clamp(b)))
}

// observe learns from a window in which requests of the given cost were made. The
// size at most doubles or halves, or nearly so.
func (z sizing) observe(s sizer, offered int64) sizer {
	if offered < 1 {
		return s
	}
	demand := min(float64(offered), mostDemand)
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

// refused learns that the store had less left than a request needed.
func (z sizing) refused(s sizer) sizer {
	const dearer = contention * strand / 2
	b := z.learned(s)
	if f := float64(s.forecast); f > 0 {
		s.judge(dearer * (z.follow(f) - b) / leastCost(f))
	}
	z.descend(&s, dearer*b, dearer*b)
	return s
}

// descend takes a step against the gradient of the cost in the logarithm of the
// size, where the cost is convex. The step is AdaGrad's (Duchi, Hazan and Singer
// 2011), with three changes. The sum of squares is at least the square of the scale
// of the costs, and a gradient counts no more than the root of the sum: so a step
// is at most 1/√2, where AdaGrad's first goes all the way that it may. Only a
// logarithmic number of gradients is cut, so the regret remains O(√T). And the sum
// fades, so that a demand that changes after long is followed, too.
func (z sizing) descend(s *sizer, gradient, scale float64) {
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

// judge notes by how much the size of the forecast cost more than the learned one.
func (s *sizer) judge(more float64) {
	debt := float64(s.debt) + more
	if math.IsNaN(debt) {
		debt = 0
	}
	s.debt = float32(max(-mostDebt, min(mostDebt, debt)))
}

// blend returns the mean of two experts' sizes, weighted by Hedge (Freund and
// Schapire 1997): what an expert cost lowers its weight exponentially.
func blend(debt float32, follow, learned float64) float64 {
	weight := 1 / (1 + math.Exp(eagerness*float64(debt)))
	return weight*follow + (1-weight)*learned
}

// learned returns the size by the gradients alone.
func (z sizing) learned(s sizer) float64 {
	if s.squares == 0 {
		return z.clamp(float64(z.start))
	}
	return z.clamp(math.Exp(float64(s.log)))
}

// follow returns the best size for a demand that is known.
func (z sizing) follow(demand float64) float64 { return z.clamp(bestSize(demand)) }

// clamp keeps a size within its bounds, whatever it is.
func (z sizing) clamp(b float64) float64 {
	if !(b > float64(z.low)) {
		return float64(z.low)
	}
	return min(b, float64(z.high))
}

func bestSize(demand float64) float64         { return math.Sqrt(2 * roundTrip * demand / strand) }
func leastCost(demand float64) float64        { return math.Sqrt(2 * roundTrip * strand * demand) }
func windowCost(size, demand float64) float64 { return roundTrip*demand/size + strand*size/2 }
