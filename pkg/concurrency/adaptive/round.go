package adaptive

import "github.com/weir-dev/weir/pkg/limiter"

// roundSamples is how many samples a round takes at least, as in the WindowedLimit of
// Netflix concurrency-limits.
const roundSamples = 10

// fullSamples is how many requests have to fill the limit before it may grow.
const fullSamples = 16

// A round is what the law learns from at once. It lasts two latencies, so most of its
// samples were forwarded under the limit that it is about to move. A law that moves at
// each sample makes the same correction again for every request that was under way
// already, and swings between its bounds.
type round struct {
	begun   bool
	since   limiter.Instant // of its first sample
	samples int64
	served  int64          // of the samples
	tried   int64          // samples since the limit in force rose
	full    int64          // of the tried
	latency limiter.Micros // sum over the served
}

// add takes one sample.
func (r *round) add(now limiter.Instant, rtt limiter.Micros, full, dropped bool) {
	if !r.begun {
		r.begun, r.since = true, now
	}
	r.samples++
	r.tried++
	if full {
		r.full++
	}
	if !dropped {
		r.served++
		r.latency += rtt
	}
}

// mean returns the latency of what was served, or last when nothing was.
func (r *round) mean(last limiter.Micros) limiter.Micros {
	if r.served == 0 {
		return last
	}
	return r.latency / limiter.Micros(r.served)
}

// complete reports whether the law may learn from the round. Last is the latency when
// nothing was served.
func (r *round) complete(now limiter.Instant, last limiter.Micros) bool {
	return r.samples >= roundSamples && now.Sub(r.since) >= 2*r.mean(last)
}

// dropped reports whether a sample was dropped.
func (r *round) dropped() bool { return r.served < r.samples }

// filled reports whether a quarter of the requests filled the limit.
func (r *round) filled() bool { return r.tried > 0 && 4*r.full >= r.tried }

// conclusive reports whether there is enough to see that the limit is filled, or not.
func (r *round) conclusive() bool { return r.full >= fullSamples || r.tried >= 4*fullSamples }

// retry goes on after the limit rose: whether that is filled is not known yet.
func (r *round) retry() { r.tried, r.full = 0, 0 }
