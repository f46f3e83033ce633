package translate

import (
	"slices"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
)

func response(r *v1alpha1.PolicyResponse) policy.Response {
	return policy.Response{
		IETF:            slices.Contains(r.Headers, v1alpha1.IETFHeaders),
		XRateLimit:      slices.Contains(r.Headers, v1alpha1.XRateLimitHeaders),
		Quota:           policy.QuotaFields(r.QuotaFields),
		GRPCUnavailable: r.GRPCStatus == v1alpha1.GRPCUnavailable,
		StatusCode:      int(r.StatusCode),
		Jitter:          int(or(r.RetryAfterJitterPercent, 0)),
		Body:            policy.BodyType(r.Body.Type),
	}
}
