package simulate

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A clock is one node's: off by any amount, and fast or slow by a rate that changes
// now and then. Its count never steps; the time of day may.
type clock struct {
	since instant // when the rate last changed
	read  int64   // what it showed then, in nanoseconds
	rate  float64 // what it gains per unit of time
	set   int64   // by how much the time of day was set, in nanoseconds
}

// at returns what the clock has counted.
func (c *clock) at(t instant) int64 {
	d := t - c.since
	return c.read + d + int64(math.Floor(float64(d)*c.rate))
}

// drift changes the rate from t on.
func (c *clock) drift(t instant, rate float64) {
	c.read, c.since, c.rate = c.at(t), t, rate
}

// when returns about when the clock will show read, never before.
func (c *clock) when(read int64) instant {
	t := c.since + int64(math.Ceil(float64(read-c.read)/(1+c.rate)))
	for c.at(t) < read {
		t++
	}
	return t
}

// micros returns the time of day.
func (c *clock) micros(t instant) limiter.Instant { return limiter.Instant((c.at(t) + c.set) / 1000) }
