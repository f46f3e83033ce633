package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An offset is an estimate of how far a store's clock is ahead of the own one,
// in nanoseconds: somewhere in [low, high] at the instant at, and in an interval
// that grows with the time since. The zero value knows nothing.
type offset struct {
	low, high, at int64
	known         bool
}

// A span is what the store's clock may read: something in [From, To].
type span struct{ from, to limiter.Instant }

// observe returns the estimate after a reply: the store's clock read store some
// time between the instants sent and received. The narrower of the two estimates
// stays, and the newer one when they contradict each other, because then the
// store's clock was set, or another machine serves now.
func (o offset) observe(sent, received int64, store limiter.Instant) offset {
	next := offset{
		low:   int64(store)*int64(time.Microsecond) - received,
		high:  (int64(store)+1)*int64(time.Microsecond) - sent, // the store cut off less than 1µs
		at:    received,
		known: true,
	}
	low, high := o.bounds(received)
	if o.known && high-low < next.high-next.low && low <= next.high && next.low <= high {
		return o
	}
	return next
}

// span returns what the store's clock may read at the own instant now.
func (o offset) span(now int64) span {
	low, high := o.bounds(now)
	return span{
		from: limiter.Instant((now + low) / int64(time.Microsecond)),
		to:   limiter.Instant((now + high) / int64(time.Microsecond)),
	}
}

// middle returns the best guess of what the store's clock reads at the own
// instant now.
func (o offset) middle(now int64) limiter.Instant {
	at := o.span(now)
	return at.from + (at.to-at.from)/2
}

func (o offset) bounds(now int64) (low, high int64) {
	parted := drift(max(0, now-o.at))
	return o.low - parted, o.high + parted
}
