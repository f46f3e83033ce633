package rls

import (
	"time"

	"github.com/weir-dev/weir/internal/sidecar/quota"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Numbers of the protocol, which are not linked: it comes with all that Envoy can be configured by,
// and each process would keep that in memory. Tests compare them.
const (
	okCode, overLimitCode = 1, 2

	unknownUnit, secondUnit, minuteUnit, hourUnit, dayUnit, monthUnit, weekUnit = 0, 1, 2, 3, 4, 5, 7
)

// units are the protocol's, longest first. No window is a year long, and its month is
// the calendar's.
var units = []struct {
	length time.Duration
	unit   uint64
}{
	{7 * 24 * time.Hour, weekUnit},
	{24 * time.Hour, dayUnit},
	{time.Hour, hourUnit},
	{time.Minute, minuteUnit},
	{time.Second, secondUnit},
}

// unitOf returns the unit of a rate, and of how many of them its window is made, 0 for one.
func unitOf(r limiter.Rate) (unit uint64, multiplier uint32) {
	if r.Monthly {
		return monthUnit, 0
	}
	length := quota.Length(r)
	for _, u := range units {
		switch {
		case length%u.length != 0:
		case length == u.length:
			return u.unit, 0
		default:
			return u.unit, uint32(length / u.length) // at most a month's seconds
		}
	}
	return unknownUnit, 0
}
