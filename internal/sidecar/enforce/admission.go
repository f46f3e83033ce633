package enforce

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An Admission is what is left to do for a request that was admitted: to wait for
// its turn, and to settle what it cost. It is of one request and not safe for
// concurrent use.
type Admission struct {
	delay  time.Duration
	shares []share
}

// admissionOf returns what is left to do about what was taken, nil when that is
// nothing. It copies taken only then.
func admissionOf(taken []share) *Admission {
	var delay time.Duration
	settles := false
	for i := range taken {
		s := &taken[i]
		if !s.limit.shadow {
			delay = max(delay, s.decision.Delay)
		}
		settles = settles || s.settles()
	}
	if delay == 0 && !settles {
		return nil
	}
	return &Admission{delay: delay, shares: slices.Clone(taken)}
}

// Delay returns how long the request has to wait for its turn: 0 for a nil Admission.
func (a *Admission) Delay() time.Duration {
	if a == nil {
		return 0
	}
	return a.delay
}

// Wait returns when it is the request's turn, and only then is the request counted.
// When ctx is done before, it gives back what the request was granted, though not its
// place in a queue, behind which others stand. It then returns the error of ctx: the
// request must not pass.
func (a *Admission) Wait(ctx context.Context) error {
	if a.delay == 0 {
		return nil
	}
	turn := time.NewTimer(a.delay)
	defer turn.Stop()
	select {
	case <-turn.C:
		countAll(a.shares)
		return nil
	case <-ctx.Done():
		cancel(a.shares)
		a.shares = nil
		return ctx.Err()
	}
}

// Settle charges what a response says its request cost, in its header or, at the end,
// in its trailer. A cost that neither says stays as it was charged. Settle reports
// whether the header says all that limits want to know.
func (a *Admission) Settle(header http.Header) (all bool) {
	all = true
	for i := range a.shares {
		if s := &a.shares[i]; s.settles() && !s.settle(header) {
			all = false
		}
	}
	return all
}

// params returns what the limit works the counter of a value by.
func (l *limit) params(value string) limiter.Params {
	if p, ok := l.overrides[value]; ok {
		return p
	}
	return l.Limit.Params(l.Policy)
}
