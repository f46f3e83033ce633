package enforce

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A NotFoundError says that no policy or limit in force has the name.
type NotFoundError struct {
	Field string // "policy" or "limit"
	Name  string
}

// Error names what was not found.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no %s %q is in force here", e.Field, e.Name)
}

// A KeyError says that a key was given to a limit without one, or one with another number of
// parts to a limit with one.
type KeyError struct {
	Limit string
	Parts int // of the limit's key, 0 when it has none
}

// Error names the limit and the cure.
func (e *KeyError) Error() string {
	switch e.Parts {
	case 0:
		return fmt.Sprintf("limit %q has a single counter: leave the key empty", e.Limit)
	case 1:
		return fmt.Sprintf("limit %q counts by key: name the key", e.Limit)
	default:
		return fmt.Sprintf("limit %q counts by a key of %d parts: name them in a list, in the order of the policy", e.Limit, e.Parts)
	}
}

// A TenantError says that a tenant was given to a limit that is not split over
// tenants.
type TenantError struct{ Limit string }

// Error names the limit and the cure.
func (e *TenantError) Error() string {
	return fmt.Sprintf("limit %q is not split over tenants: leave the tenant empty", e.Limit)
}

// A CostError says that a cost exceeds what a limit ever admits.
type CostError struct {
	Limit      string
	Cost, Most int64
}

// Error names the limit and the largest cost.
func (e *CostError) Error() string {
	return fmt.Sprintf("%d can never be admitted: limit %q admits %d at most", e.Cost, e.Limit, e.Most)
}

// A Query asks one limit of a policy in the pod's namespace.
type Query struct {
	Policy, Limit string
	Key           string   // value of a limit with a key of one part
	Parts         []string // the same of a key of several, in the order of the policy
	Tenant        string   // of a limit that is split over tenants; empty for those that name none
	Cost          int64    // at least 1
	Peek          bool     // ask what would be decided, and take nothing
}

// Check asks one limit. The decision's Allowed is whether to go on, after
// its Delay: in shadow it is true whatever was counted. Errors are *NotFoundError,
// *KeyError, *TenantError, *CostError, or as Decide's.
func (e *Enforcer) Check(ctx context.Context, q Query) (twotier.Decision, error) {
	t := e.enter()
	defer t.leave()
	if t.closed {
		return twotier.Decision{}, errClosed
	}
	l, err := t.find(e.cfg.Namespace, q.Policy, q.Limit)
	if err != nil {
		return twotier.Decision{}, err
	}
	if err := l.accepts(q); err != nil {
		return twotier.Decision{}, err
	}
	if e.cfg.Mode == Bypass {
		limit := l.Limit.Rates[0].Limit
		return twotier.Decision{Allowed: true, Limit: limit, Remaining: limit}, nil
	}
	l.matching.match()
	d, err := l.check(ctx, q)
	if err != nil {
		return twotier.Decision{}, err
	}
	if l.shadow {
		d.Allowed, d.Delay = true, 0
	}
	return d, nil
}

// accepts says what of the query the limit has no use for, or lacks.
func (l *limit) accepts(q Query) error {
	parts, given := 0, len(q.Parts)
	if l.Limit.Key != nil {
		parts = len(l.Limit.Key.Parts)
	}
	if given == 0 && q.Key != "" {
		given = 1
	}
	if parts != given {
		return &KeyError{Limit: q.Limit, Parts: parts}
	}
	if q.Tenant != "" && l.Limit.Fairness == nil {
		return &TenantError{Limit: q.Limit}
	}
	return nil
}

// value returns the value that the query is counted under.
func (q *Query) value() string {
	if len(q.Parts) > 0 {
		return policy.JoinParts(q.Parts...)
	}
	return policy.JoinParts(q.Key)
}

// check asks the engine, and counts its decision unless nothing was taken.
func (l *limit) check(ctx context.Context, q Query) (twotier.Decision, error) {
	r := twotier.Request{Value: q.value(), Tenant: l.TenantNamed(q.Tenant), Cost: q.Cost}
	ask := l.engine.Acquire
	if q.Peek {
		ask = l.peek
	}
	d, err := ask(ctx, r)
	if err != nil {
		return twotier.Decision{}, fmt.Errorf("limit %s/%s: %w", q.Policy, q.Limit, err)
	}
	if !d.Allowed && l.neverAdmits(r.Value, r.Cost, d) {
		return twotier.Decision{}, &CostError{Limit: q.Limit, Cost: q.Cost, Most: l.params(r.Value).MostAtOnce()}
	}
	if !q.Peek {
		s := share{limit: l, value: r.Value, cost: r.Cost, decision: d}
		l.counts.Count(time.Now(), s.event())
	}
	return d, nil
}

// peek asks the engine what it would decide, which is not known without the store unless the
// process holds enough.
func (l *limit) peek(ctx context.Context, r twotier.Request) (twotier.Decision, error) {
	f, err := l.engine.Peek(ctx, r)
	if err == nil && f.Source != twotier.FromLease {
		err = f.Unread
	}
	return f.Decision, err
}
