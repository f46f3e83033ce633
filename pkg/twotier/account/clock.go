package account

import "github.com/weir-dev/weir/pkg/limiter"

// A ClockOffset is an estimate of how far a store's clock is ahead of the local one,
// in nanoseconds: somewhere in [low, high] at the instant at, and in an interval
// that grows with the time since. The zero value knows nothing.
type ClockOffset struct {
	low, high, at int64
	Known         bool
}

// An Interval is what the store's clock may read: something in [From, To].
type Interval struct{ From, To limiter.Instant }

// Observe returns the estimate after a reply: the store's clock read store some
// time between the instants sent and received. The narrower of the two estimates
// stays, and the newer one when they contradict each other, because then the
// store's clock was set, or another machine serves now.
func (o ClockOffset) Observe(sent, received int64, store limiter.Instant) ClockOffset {
	next := ClockOffset{
		low:   int64(store)*microsecond - received,
		high:  (int64(store)+1)*microsecond - sent, // the store cut off less than 1µs
		at:    received,
		Known: true,
	}
	low, high := o.bounds(received)
	if o.Known && high-low < next.high-next.low && low <= next.high && next.low <= high {
		return o
	}
	return next
}

// Interval returns what the store's clock may read at the local instant now.
func (o ClockOffset) Interval(now int64) Interval {
	low, high := o.bounds(now)
	return Interval{
		From: limiter.Instant((now + low) / microsecond),
		To:   limiter.Instant((now + high) / microsecond),
	}
}

// Midpoint returns the best guess of the store's clock at the own
// instant now.
func (o ClockOffset) Midpoint(now int64) limiter.Instant {
	at := o.Interval(now)
	return at.From + (at.To-at.From)/2
}

func (o ClockOffset) bounds(now int64) (low, high int64) {
	parted := drift(max(0, now-o.at))
	return o.low - parted, o.high + parted
}

// A StoreTime is what is known of the time of the store that keeps a counter.
type StoreTime struct {
	Clock ClockOffset
	Seen  limiter.Instant // when the store was last heard of
	// Floor is an instant by which all windows had ended in which a share was admitted
	// that no key remembers. A clock that shows less was set back.
	Floor limiter.Instant
	// Until the local instant swapped another store may have granted units of the windows
	// that were open; past when there was none.
	Swapped  int64
	Promised Promise
}

// Behind returns how long the store's clock takes, from a time that it reported, until
// it shows again what it had shown when shares were admitted that no key remembers. The
// clock was set back, and what the store grants meanwhile may be of the same windows.
func (v StoreTime) Behind(now limiter.Instant) limiter.Micros { return max(0, v.Floor.Sub(now)) }
