package proxy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/quota"
	"github.com/weir-dev/weir/pkg/limiter"
)

// quotaDetail says which quota was exceeded.
func quotaDetail(why *enforce.Refusal) string {
	detail := fmt.Sprintf("limit %q of policy %q admits %s", why.Limit.Name, why.Policy.Name, promiseOf(why))
	switch why.Decision.Reason {
	case limiter.Amnesia:
		detail += fmt.Sprintf("; its store may have forgotten what it granted, so nothing is granted for another %s: the condition Learning of the policy names the cure", inWords(why.Decision.RetryAfter))
	case limiter.ClockBehind:
		detail += fmt.Sprintf("; the clock of its store went back, so nothing is granted until it has caught up %s: the condition Learning of the policy names the cure", inWords(why.Decision.RetryAfter))
	default: // the limit is used up
	}
	return detail
}

// inWords returns what Retry-After says, in hours, minutes and seconds.
func inWords(wait time.Duration) time.Duration {
	return time.Duration(problem.Seconds(wait)) * time.Second
}

// promiseOf says what the rate that binds admits.
func promiseOf(why *enforce.Refusal) string {
	rate := quota.BindingRate(why.State())
	per := quota.Length(rate).String()
	if rate.Monthly {
		per = "calendar month"
	}
	switch why.Params.Algorithm {
	case limiter.SlidingWindow, limiter.SlidingLog:
		return fmt.Sprintf("%d in any %s", rate.Limit, per)
	case limiter.TokenBucket, limiter.GCRA:
		return fmt.Sprintf("%d per %s and bursts of %d", rate.Limit, per, cmp.Or(rate.Burst, rate.Limit))
	case limiter.LeakyBucket:
		return fmt.Sprintf("%d per %s, evenly, and lets none wait longer than %s", rate.Limit, per,
			time.Duration(why.Params.MaxDelay)*time.Microsecond)
	default:
		return fmt.Sprintf("%d per %s", rate.Limit, per)
	}
}
