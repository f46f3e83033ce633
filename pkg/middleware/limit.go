package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/pkg/twotier"
)

// A Limit is one that requests of type R are held to.
type Limit[R any] struct {
	// Name is what clients see of the limit: printable ASCII.
	Name    string
	Limiter *twotier.Limiter
	// Request returns which counter a request is charged to, and its cost; false when the
	// limit does not apply to it. When Request is nil, every request costs one unit of the
	// limit's single counter.
	Request func(context.Context, R) (twotier.Request, bool)
}

func (l *Limit[R]) request(ctx context.Context, r R) (twotier.Request, bool) {
	if l.Request == nil {
		return twotier.Request{Cost: 1}, true
	}
	return l.Request(ctx, r)
}

// A verdict is what a limit has decided.
type verdict struct {
	limit string
	twotier.Decision
}

// An admission is what the limits of a request have decided, the one that refuses last.
type admission []verdict

// admit decides a request by all limits, and waits as long as they delay it. After an error and
// after a refusal nothing is charged.
func admit[R any](ctx context.Context, r R, limits []Limit[R]) (made admission, err error) {
	var delay time.Duration
	for i := range limits {
		ask, applies := limits[i].request(ctx, r)
		if !applies {
			continue
		}
		decision, err := limits[i].Limiter.Acquire(ctx, ask)
		if err != nil {
			made.cancel()
			return nil, err
		}
		if !decision.Allowed {
			made.cancel()
			return append(made, verdict{limits[i].Name, decision}), nil
		}
		made = append(made, verdict{limits[i].Name, decision})
		delay = max(delay, decision.Delay)
	}
	if err := wait(ctx, delay); err != nil {
		made.cancel()
		return nil, err
	}
	return made, nil
}

func (a admission) cancel() {
	for i := range a {
		a[i].Cancel()
	}
}

// refusal returns the verdict that refuses, nil when there is none.
func (a admission) refusal() *verdict {
	if n := len(a); n > 0 && !a[n-1].Allowed {
		return &a[n-1]
	}
	return nil
}

// overLimit reports whether the limit is used up. Otherwise nobody knows, and the limit's
// failure action refuses.
func (v *verdict) overLimit() bool {
	return v.Source != twotier.FromFailureAction && v.Source != twotier.FromDrain
}

// comeBack returns how long to wait before it makes sense to ask again, 0 when it never does.
func (v *verdict) comeBack() time.Duration {
	if v.overLimit() {
		return v.RetryAfter
	}
	return max(v.RetryAfter, time.Second)
}

// wait returns the error of ctx when that is done first, or will be.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return errors.Join(context.DeadlineExceeded, errLate)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errLate = errors.New("the limit delays the request beyond its deadline")
