package federation

import (
	"errors"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// ErrClosed is the cause of every refusal after Close.
var ErrClosed = errors.New("the region is closed")

// refuse returns that there is nothing, and counts what was asked for.
func (r *Region) refuse(q *request, now, again int64) limiter.Result {
	r.missed(q)
	return r.refusal(q, now, again)
}

// missed counts what was asked for in vain.
func (r *Region) missed(q *request) {
	r.demand.refused += q.Want
	r.split.missed(q, r.demand.index)
	r.counts.refused += q.Want
}

// refusal returns that there is nothing before an instant.
func (r *Region) refusal(q *request, now, again int64) limiter.Result {
	rate := limiter.Rate{Limit: r.config.Params.Limit, Window: r.config.Params.Window}
	res := limiter.Result{
		Reason: limiter.Exhausted, Algorithm: limiter.FixedWindow, Limit: rate.Limit,
		RetryAfter: max(limiter.Millisecond, micros(again-now)),
	}
	if q.Min > rate.Limit {
		res.Reason, res.RetryAfter = limiter.TooLarge, 0
	}
	if r.link.estimate.known {
		res.Now = r.link.estimate.latest(now)
		w := rate.WindowAt(res.Now)
		res.Windows.N, res.Windows.Open[0] = 1, w
		res.ResetAfter = w.End().Sub(res.Now)
	}
	return res
}

func (r *Region) unavailable(cause error) error {
	if away(cause) {
		return cause
	}
	return &store.UnavailableError{Store: "budget " + r.config.ID, Cause: cause}
}
