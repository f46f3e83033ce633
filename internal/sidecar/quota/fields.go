package quota

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Field is one header field.
type Field struct{ Name, Value string }

// Fields returns what clients see of the state of a limit: how much is left when the
// policy says so, and of a refusal when to come back.
func Fields(s enforce.QuotaState) []Field {
	var fields []Field
	if shows(s) {
		if s.Policy.Response.IETF {
			fields = append(fields, ietf(s)...)
		}
		if s.Policy.Response.XRateLimit {
			fields = append(fields, xRateLimit(s)...)
		}
	}
	if wait := comeBack(s); wait > 0 {
		fields = append(fields, Field{"Retry-After", seconds(jittered(wait, s.Policy.Response.Jitter))})
	}
	return fields
}

// shows reports whether the client sees what is left. A refusal for another reason
// than the quota does not know.
func shows(s enforce.QuotaState) bool {
	switch {
	case s.Limit == nil:
		return false
	case s.Refusal != nil:
		return s.Refusal.Cause == enforce.QuotaExceeded
	default:
		return s.Policy.Response.Shows(s.Decision.Remaining, s.Decision.Limit)
	}
}

// ietf returns the fields of the draft. Parameters that it lacks are prefixed with our
// name, as it asks.
func ietf(s enforce.QuotaState) []Field {
	name := strconv.Quote(s.Limit.Name)
	left := name + ";r=" + strconv.FormatInt(s.Decision.Remaining, 10)
	if t := untilMore(s); t > 0 {
		left += ";t=" + seconds(t)
	}
	return []Field{{"RateLimit-Policy", name + promise(s)}, {"RateLimit", left}}
}

// promise describes the rate that binds: the quota, its unit unless that is a
// request, its window unless that is not a whole number of seconds, and the burst.
func promise(s enforce.QuotaState) string {
	rate := BindingRate(s)
	p := ";q=" + strconv.FormatInt(rate.Limit, 10)
	if s.Limit.Cost != nil {
		p += `;qu="weir-cost"`
	}
	if !rate.Monthly && rate.Window%limiter.Second == 0 {
		p += ";w=" + strconv.FormatInt(int64(rate.Window/limiter.Second), 10)
	}
	if rate.Burst != 0 {
		p += ";weir-burst=" + strconv.FormatInt(rate.Burst, 10)
	}
	return p
}

// xRateLimit returns the fields that many services send. Their reset is in seconds
// from now.
func xRateLimit(s enforce.QuotaState) []Field {
	fields := []Field{
		{"X-RateLimit-Limit", strconv.FormatInt(BindingRate(s).Limit, 10)},
		{"X-RateLimit-Remaining", strconv.FormatInt(s.Decision.Remaining, 10)},
	}
	if t := untilMore(s); t > 0 {
		fields = append(fields, Field{"X-RateLimit-Reset", seconds(t)})
	}
	return fields
}

// untilMore returns how long it takes until more may be admitted. For windows that is
// when they end; other algorithms admit again as soon as there is room.
func untilMore(s enforce.QuotaState) time.Duration {
	if s.Params.Algorithm.WindowCoupled() {
		return max(s.Decision.RetryAfter, s.Decision.ResetAfter)
	}
	return s.Decision.RetryAfter
}

// comeBack returns how long to wait before it makes sense to come back, 0 when it
// never does or the request was admitted.
func comeBack(s enforce.QuotaState) time.Duration {
	if s.Refusal == nil {
		return 0
	}
	switch s.Refusal.Cause {
	case enforce.StoreUnavailable, enforce.StoreDraining:
		return max(s.Decision.RetryAfter, time.Second)
	default:
		return s.Decision.RetryAfter
	}
}

// jittered adds up to the given percentage, so that clients that were refused together
// do not come back together.
func jittered(wait time.Duration, percent int) time.Duration {
	most := float64(wait) * float64(percent) / 100
	return wait + time.Duration(rand.Float64()*most)
}

func seconds(d time.Duration) string { return strconv.FormatInt(problem.Seconds(d), 10) }
