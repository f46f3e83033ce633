package rls

import (
	"math"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/quota"
)

// answer returns the answer to a call. Its header fields are those of the state
// that binds most.
func answer(r enforce.Ruling) *ratelimitv3.RateLimitResponse {
	out := &ratelimitv3.RateLimitResponse{
		OverallCode: code(r.Allowed),
		Statuses:    make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(r.States)),
	}
	var binding enforce.QuotaState
	for i, s := range r.States {
		out.Statuses[i] = descriptorStatus(s)
		if s.Binds(binding) {
			binding = s
		}
	}
	for _, f := range quota.Fields(binding) {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, &corev3.HeaderValue{Key: f.Name, Value: f.Value})
	}
	return out
}

// descriptorStatus returns the status of a descriptor. A limit that did not judge by
// its counter does not say what is left.
func descriptorStatus(s enforce.QuotaState) *ratelimitv3.RateLimitResponse_DescriptorStatus {
	out := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: code(s.Refusal == nil)}
	if s.Limit == nil || s.Decision.Limit == 0 {
		return out
	}
	out.CurrentLimit = currentLimit(s)
	out.LimitRemaining = saturated(s.Decision.Remaining)
	if reset := max(s.Decision.ResetAfter, s.Decision.RetryAfter); reset > 0 {
		out.DurationUntilReset = durationpb.New(reset)
	}
	return out
}

func code(allowed bool) ratelimitv3.RateLimitResponse_Code {
	if allowed {
		return ratelimitv3.RateLimitResponse_OK
	}
	return ratelimitv3.RateLimitResponse_OVER_LIMIT
}

// saturated returns n, or the most that the protocol can say.
func saturated(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
