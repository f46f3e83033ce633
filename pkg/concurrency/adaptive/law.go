package adaptive

import "math"

// minGradient bounds how much one round counts.
const minGradient = 0.5

// startFactor is by how much the limit grows in a round before there was any sign of
// load: the slow start of TCP (Jacobson, 1988), a little slower.
const startFactor = 1.5

// calmRounds is how many rounds in a row without a queue say that there is no sign of
// load any more.
const calmRounds = 3

// severeRounds is how many rounds in a row that are as bad as one can be are not strays:
// the limit then falls all the way that they say.
const severeRounds = 2

// gradient is how far the limit is from what the latency of a round bears: 1 when it
// may grow. Dropped requests count as the worst.
func (l *Limit) gradient(r round) float64 {
	if r.served == 0 {
		return minGradient // there may be no latency to compare yet
	}
	served := min(max(l.config.Tolerance*float64(l.Baseline())/float64(r.mean(l.latency)), minGradient), 1)
	dropped := float64(r.samples-r.served) / float64(r.samples)
	return served + dropped*(minGradient-served)
}

// filled reports whether at least half of what the holder may use was in use. The
// latency of requests that found less is not a sign of what more would do. A holder may
// use its ceiling, and an even part of the limit, which its share reaches soon.
func (l *Limit) filled(u Use) bool {
	return 2*u.InFlight >= max(u.Ceiling, int64(l.inForce())/l.holders)
}

// judge ends the round unless that takes more samples, and learns from it if it shows
// anything: whether the limit may grow is shown only by those that fill it.
func (l *Limit) judge(r round) {
	gradient := l.gradient(r)
	if gradient == 1 && !r.conclusive() {
		return
	}
	l.round = round{}
	switch {
	case !r.dropped() && !r.filled():
		l.starting, l.calm = false, 0
		return
	case r.dropped() || !l.baseline.shown(r.mean(l.latency)):
		l.calm = 0
	default:
		l.calm++
	}
	if l.severe++; gradient > minGradient {
		l.severe = 0
	}
	l.starting = gradient == 1 && (l.starting || l.calm >= calmRounds)
	from := l.inForce()
	l.learn(from, gradient)
	if !r.dropped() {
		l.hold(from)
	}
	l.estimate = l.config.clamp(l.estimate)
	l.learned++
}

// learn moves the estimate. The samples of a round follow from the limit that was in
// force, so that limit is corrected, from.
func (l *Limit) learn(from, gradient float64) {
	smoothing := l.config.Smoothing
	if l.severe >= severeRounds {
		smoothing = 1
	}
	switch {
	case l.starting:
		l.estimate = startFactor * from
	case l.config.Algorithm == Gradient2:
		l.estimate += smoothing * (from*gradient + math.Sqrt(from) - l.estimate)
	case gradient < 1:
		l.estimate = math.Floor(from * l.config.Backoff)
	default:
		l.estimate = min(l.estimate+1, from+math.Sqrt(from))
	}
}

// hold keeps the estimate from falling, from where it was, below half of the limit that
// was in force when the baseline was last known to be right. A backend that became slower
// has the same latency as one that has too much to do, until the baseline is measured.
func (l *Limit) hold(from float64) {
	if l.config.Baseline.Type == Measured {
		l.estimate = max(l.estimate, min(from, l.rested/2))
	}
}

// inForce returns the limit by which the backend is used.
func (l *Limit) inForce() float64 {
	if l.followed > 0 {
		return float64(l.followed)
	}
	return l.estimate
}
