package rls

import (
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-dev/weir/internal/sidecar/quota"
	"github.com/weir-dev/weir/pkg/limiter"
)

// units are the protocol's, longest first. No window is a year long, and its month is
// the calendar's.
var units = []struct {
	length time.Duration
	unit   ratelimitv3.RateLimitResponse_RateLimit_Unit
}{
	{7 * 24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_WEEK},
	{24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_DAY},
	{time.Hour, ratelimitv3.RateLimitResponse_RateLimit_HOUR},
	{time.Minute, ratelimitv3.RateLimitResponse_RateLimit_MINUTE},
	{time.Second, ratelimitv3.RateLimitResponse_RateLimit_SECOND},
}

// unitOf returns the unit of a rate, and of how many of them its window is made, 0 for one.
func unitOf(r limiter.Rate) (ratelimitv3.RateLimitResponse_RateLimit_Unit, uint32) {
	if r.Monthly {
		return ratelimitv3.RateLimitResponse_RateLimit_MONTH, 0
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
	return ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN, 0
}
