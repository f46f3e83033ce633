package joint

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// answers are what budgets said, by rate.
type answers struct {
	of    [limiter.MaxRates]limiter.Result
	known [limiter.MaxRates]bool
}

func (a *answers) enter(i int, res limiter.Result) { a.of[i], a.known[i] = res, true }

// span returns from when to when the windows of all n rates are open.
func (a *answers) span(n int) (from, to limiter.Instant) {
	from, to = 0, limiter.Instant(math.MaxInt64)
	for i := range n {
		w := a.of[i].Windows.Open[0]
		from, to = max(from, w.Start()), min(to, w.End())
	}
	return from, to
}

// meet reports whether all n rates named a window, and all of them are open at some instant.
func (a *answers) meet(n int) bool {
	for i := range n {
		if !a.known[i] || a.of[i].Windows.N != 1 {
			return false
		}
	}
	from, to := a.span(n)
	return from < to
}

// now returns the latest instant that a budget named.
func (a *answers) now(n int) limiter.Instant {
	var now limiter.Instant
	for i := range n {
		now = max(now, a.of[i].Now)
	}
	return now
}

// grant returns that as many units are charged to the windows of all n rates, which meet.
func (a *answers) grant(n int, units int64) limiter.Result {
	out := a.described(n)
	out.Reason, out.Granted, out.ExpiresIn = limiter.Granted, units, limiter.MaxWindow
	for i := range n {
		out.ExpiresIn = min(out.ExpiresIn, a.of[i].ExpiresIn)
	}
	return out
}

// refusal returns why one of n rates does not admit, or several, and when all of them may. An
// amount that one of them never admits is too large for all. When each admits by itself their
// windows do not meet, so one of them is over.
func (a *answers) refusal(n int) limiter.Result {
	out := a.described(n)
	out.Reason, out.RetryAfter = limiter.Exhausted, limiter.Millisecond
	for i := range n {
		switch r := &a.of[i]; {
		case !a.known[i], r.Reason == limiter.Granted:
		case r.Reason == limiter.TooLarge:
			out.Reason = limiter.TooLarge
		default:
			if out.Reason == limiter.Exhausted {
				out.Reason = r.Reason
			}
			out.RetryAfter = max(out.RetryAfter, r.RetryAfter)
		}
	}
	if out.Reason == limiter.TooLarge {
		out.RetryAfter = 0
	}
	return out
}

// described returns what is the same of all results: the rate that binds, and the windows of all,
// when they are known.
func (a *answers) described(n int) limiter.Result {
	out := limiter.Result{Algorithm: limiter.FixedWindow, Now: a.now(n)}
	first := true
	for i := range n {
		r := &a.of[i]
		if !a.known[i] || r.Limit == 0 {
			continue
		}
		if first || r.Remaining < out.Remaining || r.Remaining == out.Remaining && r.ResetAfter > out.ResetAfter {
			out.Limit, out.Remaining, out.ResetAfter, first = r.Limit, r.Remaining, r.ResetAfter, false
		}
	}
	if !a.meet(n) {
		return out
	}
	out.Windows.N = n
	for i := range n {
		out.Windows.Open[i] = a.of[i].Windows.Open[0]
	}
	from, to := a.span(n)
	out.Now = min(max(out.Now, from), to-1)
	return out
}
