package proxy

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/limiter"
)

// quotaFields sets the fields of the IETF draft "RateLimit header fields for
// HTTP". What the draft has no parameter for is prefixed with our name, as it asks.
func quotaFields(h http.Header, why *enforce.Refusal) {
	name := strconv.Quote(why.Limit.Name)
	h["RateLimit-Policy"] = []string{name + quotaOf(why)} // as the draft spells it
	left := name + ";r=" + strconv.FormatInt(why.Decision.Remaining, 10)
	if t := untilMore(why); t > 0 {
		left += ";t=" + strconv.FormatInt(problem.Seconds(t), 10)
	}
	h["RateLimit"] = []string{left}
}

// quotaOf describes the rate that binds: the quota, its unit unless that is a
// request, its window unless that is no whole number of seconds, and the burst.
func quotaOf(why *enforce.Refusal) string {
	rate := bindingRate(why)
	quota := ";q=" + strconv.FormatInt(rate.Limit, 10)
	if why.Limit.Cost != nil {
		quota += `;qu="weir-cost"`
	}
	if !rate.Monthly && rate.Window%limiter.Second == 0 {
		quota += ";w=" + strconv.FormatInt(int64(rate.Window/limiter.Second), 10)
	}
	if rate.Burst != 0 {
		quota += ";weir-burst=" + strconv.FormatInt(rate.Burst, 10)
	}
	return quota
}

// untilMore returns how long it takes until more may be admitted. Of windows that
// is when they end; other algorithms admit again as soon as there is room.
func untilMore(why *enforce.Refusal) time.Duration {
	if why.Params.Algorithm.WindowCoupled() {
		return max(why.Decision.RetryAfter, why.Decision.ResetAfter)
	}
	return why.Decision.RetryAfter
}

func quotaDetail(why *enforce.Refusal) string {
	detail := fmt.Sprintf("limit %q of policy %q admits %s", why.Limit.Name, why.Policy.Name, promiseOf(why))
	if why.Decision.Reason == limiter.Amnesia {
		detail += "; its store started anew and may have forgotten what it granted, so the window that is open grants no more"
	}
	return detail
}

// promiseOf says what the rate that binds admits.
func promiseOf(why *enforce.Refusal) string {
	rate := bindingRate(why)
	per := lengthOf(rate).String()
	if rate.Monthly {
		per = "calendar month"
	}
	switch why.Params.Algorithm {
	case limiter.SlidingWindow, limiter.SlidingLog:
		return fmt.Sprintf("%d in any %s", rate.Limit, per)
	case limiter.TokenBucket, limiter.GCRA:
		return fmt.Sprintf("%d per %s and bursts of %d", rate.Limit, per, burstOf(rate))
	case limiter.LeakyBucket:
		return fmt.Sprintf("%d per %s, evenly, and lets none wait longer than %s", rate.Limit, per,
			time.Duration(why.Params.MaxDelay)*time.Microsecond)
	default:
		return fmt.Sprintf("%d per %s", rate.Limit, per)
	}
}

// bindingRate returns the rate that the decision describes, as far as that can be
// told: of windows the one of its limit that may end so late, and otherwise the one
// whose burst is nearest.
func bindingRate(why *enforce.Refusal) limiter.Rate {
	d, rates := &why.Decision, why.Params.Rates
	binding, off := rates[0], int64(math.MaxInt64)
	for _, r := range rates {
		distance := max(burstOf(r)-d.Limit, d.Limit-burstOf(r))
		if why.Params.Algorithm.WindowCoupled() && d.ResetAfter > lengthOf(r) {
			continue
		}
		if distance < off {
			binding, off = r, distance
		}
	}
	return binding
}

func burstOf(r limiter.Rate) int64 {
	if r.Burst == 0 {
		return r.Limit
	}
	return r.Burst
}

func lengthOf(r limiter.Rate) time.Duration { return time.Duration(r.Window) * time.Microsecond }
