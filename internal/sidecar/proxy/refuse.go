package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// refuse answers a request that a limit did not admit.
func refuse(w http.ResponseWriter, r *http.Request, why *enforce.Refusal) {
	switch why.Cause {
	case enforce.QuotaExceeded:
		rate := bindingRate(why)
		quotaFields(w.Header(), why, rate)
		problem.RetryAfter(w.Header(), why.Decision.RetryAfter)
		problem.Problem{
			Type:             problem.QuotaExceeded,
			Title:            "Request cannot be satisfied as assigned quota has been exceeded",
			Status:           http.StatusTooManyRequests,
			Detail:           quotaDetail(why, rate),
			ViolatedPolicies: []string{why.Limit.Name},
		}.Write(w, r)
	case enforce.StoreUnavailable:
		problem.RetryAfter(w.Header(), max(why.Decision.RetryAfter, time.Second))
		problem.Problem{
			Type:   problem.TemporaryReducedCapacity,
			Title:  "Request cannot be satisfied due to temporary server capacity constraints",
			Status: http.StatusServiceUnavailable,
			Detail: fmt.Sprintf("the counters of limit %q of policy %q cannot be reached, and the policy refuses requests meanwhile",
				why.Limit.Name, why.Policy.Name),
			ViolatedPolicies: []string{why.Limit.Name},
		}.Write(w, r)
	case enforce.KeyMissing:
		problem.New(http.StatusBadRequest, fmt.Sprintf("limit %q of policy %q counts by %s: send it",
			why.Limit.Name, why.Policy.Name, nameOf(why.Missing))).Write(w, r)
	}
}

func quotaDetail(why *enforce.Refusal, rate limiter.Rate) string {
	detail := fmt.Sprintf("limit %q of policy %q admits %d per %s", why.Limit.Name, why.Policy.Name, rate.Limit, lengthOf(rate))
	if why.Decision.Reason == limiter.Amnesia {
		detail += "; its store started anew and may have forgotten what it granted, so the window that is open grants no more"
	}
	return detail
}

// quotaFields sets the fields of the IETF draft "RateLimit header fields for
// HTTP". The quota's window is left out where it is no whole number of seconds.
func quotaFields(h http.Header, why *enforce.Refusal, rate limiter.Rate) {
	name := strconv.Quote(why.Limit.Name)
	quota := fmt.Sprintf("%s;q=%d", name, rate.Limit)
	if rate.Window%limiter.Second == 0 {
		quota += fmt.Sprintf(";w=%d", rate.Window/limiter.Second)
	}
	h["RateLimit-Policy"] = []string{quota} // as the draft spells it
	left := fmt.Sprintf("%s;r=%d", name, why.Decision.Remaining)
	if wait := max(why.Decision.RetryAfter, why.Decision.ResetAfter); wait > 0 {
		left += fmt.Sprintf(";t=%d", problem.Seconds(wait))
	}
	h["RateLimit"] = []string{left}
}

// bindingRate returns the rate that the decision describes.
func bindingRate(why *enforce.Refusal) limiter.Rate {
	for _, r := range why.Limit.Rates {
		if r.Limit == why.Decision.Limit && why.Decision.ResetAfter <= lengthOf(r) {
			return r
		}
	}
	return why.Limit.Rates[0]
}

func lengthOf(r limiter.Rate) time.Duration { return time.Duration(r.Window) * time.Microsecond }

func nameOf(p policy.KeyPart) string {
	switch p.Type {
	case policy.HeaderKey:
		return "header " + p.Header
	case policy.ClientIPKey:
		return "client address"
	case policy.PathKey:
		return "path"
	default:
		return "method"
	}
}
