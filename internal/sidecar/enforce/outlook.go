package enforce

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/twotier"
)

// peekTime bounds how long Peek waits for all stores together. Those that were not read by
// then count as unavailable, for this one call.
const peekTime = time.Second

// An Outlook is how a query would fare.
type Outlook struct {
	twotier.Forecast
	Never  bool // the cost can never be admitted
	Shadow bool // the limit refuses nothing, whatever the forecast says
	Bypass bool // the pod's mode is Bypass: nothing is counted
}

// Undecided reports whether the limit does not decide, because its store cannot be asked.
func (o *Outlook) Undecided() bool { return causeOf(o.Decision) != QuotaExceeded }

// A QueryError says which of several queries an error is about.
type QueryError struct {
	At  int
	Err error
}

// Error is that of the query.
func (e *QueryError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the query.
func (e *QueryError) Unwrap() error { return e.Err }

// Peek returns how each query would fare, were it made now. It takes no units, makes no
// counter and counts nothing. The error is a *QueryError with one of Check's; a store that is
// away is not an error, but Outlook.Unread.
func (e *Enforcer) Peek(ctx context.Context, qs []Query) ([]Outlook, error) {
	t := e.enter()
	defer t.leave()
	if t.closed {
		return nil, errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, peekTime)
	defer cancel()
	all := make([]Outlook, len(qs))
	for i, q := range qs {
		l, err := t.find(e.cfg.Namespace, q.Policy, q.Limit)
		if err == nil {
			err = l.accepts(q)
		}
		if err == nil {
			all[i], err = l.outlook(ctx, q, e.cfg.Mode)
		}
		if err != nil {
			return nil, &QueryError{At: i, Err: err}
		}
	}
	return all, nil
}

// outlook asks the engine unless the pod's mode leaves it out.
func (l *limit) outlook(ctx context.Context, q Query, mode Mode) (o Outlook, err error) {
	o.Shadow, o.Bypass = l.shadow, mode == Bypass
	if o.Bypass {
		o.Limit = l.Limit.Rates[0].Limit
		o.Allowed, o.Remaining = true, o.Limit
		return o, nil
	}
	value := q.value()
	o.Forecast, err = l.engine.Peek(ctx, twotier.Request{Value: value, Tenant: l.TenantNamed(q.Tenant), Cost: q.Cost})
	o.Never = !o.Allowed && l.neverAdmits(value, q.Cost, o.Decision)
	return o, err
}
