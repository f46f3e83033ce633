package twotier

import "github.com/weir-dev/weir/pkg/limiter"

// A clockOffset is an estimate of how far a store's clock is ahead of the local one,
// in nanoseconds: somewhere in [low, high] at the instant at, and in an interval
// that grows with the time since. The zero value knows nothing.
type clockOffset struct {
	low, high, at int64
	known         bool
}

// An interval is what the store's clock may read: something in [From, To].
type interval struct{ from, to limiter.Instant }

// observe returns the estimate after a reply: the store's clock read store some
// time between the instants sent and received. The narrower of the two estimates
// stays, and the newer one when they contradict each other, because then the
// store's clock was set, or another machine serves now.
func (o clockOffset) observe(sent, received int64, store limiter.Instant) clockOffset {
	next := clockOffset{
		low:   int64(store)*microsecond - received,
		high:  (int64(store)+1)*microsecond - sent, // the store cut off less than 1µs
		at:    received,
		known: true,
	}
	low, high := o.bounds(received)
	if o.known && high-low < next.high-next.low && low <= next.high && next.low <= high {
		return o
	}
	return next
}

// interval returns what the store's clock may read at the local instant now.
func (o clockOffset) interval(now int64) interval {
	low, high := o.bounds(now)
	return interval{
		from: limiter.Instant((now + low) / microsecond),
		to:   limiter.Instant((now + high) / microsecond),
	}
}

// midpoint returns the best guess of what the store's clock reads at the own
// instant now.
func (o clockOffset) midpoint(now int64) limiter.Instant {
	at := o.interval(now)
	return at.from + (at.to-at.from)/2
}

func (o clockOffset) bounds(now int64) (low, high int64) {
	parted := drift(max(0, now-o.at))
	return o.low - parted, o.high + parted
}
