package rls

import (
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
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

// currentLimit describes the rate that binds, in the longest unit that its window is a
// multiple of. The unit of a window that is not a whole number of seconds is not known.
func currentLimit(s enforce.QuotaState) *ratelimitv3.RateLimitResponse_RateLimit {
	rate := quota.BindingRate(s)
	out := &ratelimitv3.RateLimitResponse_RateLimit{Name: s.Limit.Name, RequestsPerUnit: saturated(rate.Limit)}
	out.Unit, out.UnitMultiplier = unitOf(rate)
	return out
}

func unitOf(r limiter.Rate) (ratelimitv3.RateLimitResponse_RateLimit_Unit, *wrapperspb.UInt32Value) {
	if r.Monthly {
		return ratelimitv3.RateLimitResponse_RateLimit_MONTH, nil
	}
	length := quota.Length(r)
	for _, u := range units {
		switch {
		case length%u.length != 0:
		case length == u.length:
			return u.unit, nil
		default:
			return u.unit, wrapperspb.UInt32(uint32(length / u.length)) // at most a month's seconds
		}
	}
	return ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN, nil
}
