package federation

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// past is before every instant of the clock, never after every one.
const (
	past  = int64(-1) << 62
	never = int64(1) << 62
)

// An estimate is what is known of the coordinator's clock: it is ahead of the own one by
// something in [low, high] nanoseconds at the instant at, and in an interval that grows
// with the time since. The zero value knows nothing.
type estimate struct {
	low, high, at int64
	known         bool
}

// observe returns the estimate after an answer: the coordinator's clock read shown some
// time between the instants sent and received. The narrower of the two estimates stays,
// and the newer one when they contradict each other, because then the clock was set, or
// another machine serves now.
func (e estimate) observe(sent, received int64, shown limiter.Instant) estimate {
	next := estimate{
		low:   nanos(limiter.Micros(shown)) - received,
		high:  nanos(limiter.Micros(shown)+1) - sent, // the coordinator cut off less than 1µs
		at:    received,
		known: true,
	}
	low, high := e.bounds(received)
	if e.known && high-low < next.high-next.low && low <= next.high && next.low <= high {
		return e
	}
	return next
}

// earliest and latest return what the coordinator's clock reads at least and at most at
// the instant now.
func (e estimate) earliest(now int64) limiter.Instant {
	low, _ := e.bounds(now)
	return limiter.Instant((now + low) / int64(time.Microsecond))
}

func (e estimate) latest(now int64) limiter.Instant {
	_, high := e.bounds(now)
	return limiter.Instant((now+high)/int64(time.Microsecond) + 1)
}

// surely returns the instant from which on the coordinator's clock reads at least t for
// sure, perhaps the one from which on it may.
func (e estimate) surely(t limiter.Instant) int64 {
	at := nanos(limiter.Micros(t)) - e.low
	return at + max(0, at-e.at)/(perDrift-1) + int64(2*time.Microsecond)
}

func (e estimate) perhaps(t limiter.Instant) int64 {
	at := e.arrives(t)
	return at - drift(max(0, at-e.at))
}

// arrives returns the instant at which a command has to be sent to arrive when the
// coordinator's clock reads t, if the way is as long as it was.
func (e estimate) arrives(t limiter.Instant) int64 { return nanos(limiter.Micros(t)) - e.high }

func (e estimate) bounds(now int64) (low, high int64) {
	parted := drift(max(0, now-e.at))
	return e.low - parted, e.high + parted
}

// drift returns by how much two clocks may part in a time of length d: 200 ppm, as
// deadlines allow for (account.DeadlineOf).
func drift(d int64) int64 { return d / perDrift }

const perDrift = 5000

// nanos and micros convert between the units of the clock and of the coordinator.
// micros rounds down.
func nanos(d limiter.Micros) int64 { return int64(d) * int64(time.Microsecond) }

func micros(d int64) limiter.Micros {
	if d < 0 {
		return -limiter.Micros((-d + int64(time.Microsecond) - 1) / int64(time.Microsecond))
	}
	return limiter.Micros(d / int64(time.Microsecond))
}
