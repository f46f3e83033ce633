package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Handler returns a handler that passes on to next the requests that all limits admit. It
// refuses others with a body of RFC 9457 and Retry-After. All answers carry the fields
// RateLimit-Policy and RateLimit of the IETF draft "RateLimit header fields for HTTP", with an
// entry for each limit that was asked.
func Handler(next http.Handler, limits ...Limit[*http.Request]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made, err := admit(r.Context(), r, limits)
		made.describe(w.Header())
		switch refusal := made.refusal(); {
		case err != nil:
			failure(err).Write(w, r)
		case refusal != nil:
			problem.RetryAfter(w.Header(), refusal.comeBack())
			refusal.problem().Write(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// problem says why the limit refuses.
func (v *verdict) problem() problem.Problem {
	if v.overLimit() {
		return problem.Problem{
			Type: problem.QuotaExceeded, Title: "Request cannot be satisfied as assigned quota has been exceeded",
			Status: http.StatusTooManyRequests, Detail: fmt.Sprintf("limit %q is used up", v.limit),
			ViolatedPolicies: []string{v.limit}, Reason: "RATE_LIMIT_EXCEEDED",
		}
	}
	return problem.Problem{
		Type: problem.TemporaryReducedCapacity, Title: "Request cannot be satisfied due to temporary server capacity constraints",
		Status: http.StatusServiceUnavailable, Detail: fmt.Sprintf("the counters of limit %q are unavailable", v.limit),
		ViolatedPolicies: []string{v.limit}, Reason: "STORE_UNAVAILABLE",
	}
}

// failure is for a request whose caller did not wait for the limits.
func failure(err error) problem.Problem {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return problem.New(http.StatusServiceUnavailable, "the request ended before its limits had decided")
	}
	return problem.New(http.StatusInternalServerError, "the rate limiter failed")
}

// describe sets what clients see of the limits.
func (a admission) describe(h http.Header) {
	var policies, left []string
	for i := range a {
		v := &a[i]
		if v.Limit == 0 || !v.overLimit() {
			continue // what is left is not known
		}
		name := strconv.Quote(v.limit)
		policy := name + ";q=" + strconv.FormatInt(v.Limit, 10)
		if window := v.window(); window > 0 {
			policy += ";w=" + strconv.FormatInt(window, 10)
		}
		state := name + ";r=" + strconv.FormatInt(v.Remaining, 10)
		if t := max(v.ResetAfter, v.RetryAfter); t > 0 {
			state += ";t=" + strconv.FormatInt(problem.Seconds(t), 10)
		}
		policies, left = append(policies, policy), append(left, state)
	}
	if len(policies) > 0 {
		h.Set("RateLimit-Policy", strings.Join(policies, ", "))
		h.Set("RateLimit", strings.Join(left, ", "))
	}
}

// window returns the seconds of the window of the rate that binds, 0 when they are not whole or
// not known.
func (v *verdict) window() int64 {
	if v.Windows == nil {
		return 0
	}
	for _, w := range v.Windows.Slice() {
		if w.Limit == v.Limit && !w.Monthly && w.Window%limiter.Second == 0 {
			return int64(w.Window / limiter.Second)
		}
	}
	return 0
}
