package enforce

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
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

// A KeyError says that a key was given to a limit without one, or none to a
// limit with one.
type KeyError struct {
	Limit string
	Keyed bool // what the limit is
}

// Error names the limit and the cure.
func (e *KeyError) Error() string {
	if e.Keyed {
		return fmt.Sprintf("limit %q counts by key: name the key", e.Limit)
	}
	return fmt.Sprintf("limit %q has a single counter: leave the key empty", e.Limit)
}

// A CostError says that a cost exceeds what any window of a limit admits.
type CostError struct {
	Limit      string
	Cost, Most int64
}

// Error names the limit and the largest cost.
func (e *CostError) Error() string {
	return fmt.Sprintf("%d can never be admitted: limit %q admits %d in a whole window", e.Cost, e.Limit, e.Most)
}

// Check asks one limit of a policy in the pod's namespace for cost units, at
// least 1. The decision's Allowed is whether to go on: in shadow it is true
// whatever was counted. Errors are *NotFoundError, *KeyError,
// *CostError, or as Decide's.
func (e *Enforcer) Check(ctx context.Context, name, limitName, key string, cost int64) (twotier.Decision, error) {
	t := e.enter()
	defer t.leave()
	if t.closed {
		return twotier.Decision{}, errClosed
	}
	l, err := t.find(e.cfg.Namespace, name, limitName)
	if err != nil {
		return twotier.Decision{}, err
	}
	if keyed := l.Limit.Key != nil; keyed != (key != "") {
		return twotier.Decision{}, &KeyError{Limit: limitName, Keyed: keyed}
	}
	if most := mostOf(l.Limit.Rates); cost > most {
		return twotier.Decision{}, &CostError{Limit: limitName, Cost: cost, Most: most}
	}
	if e.cfg.Mode == Bypass {
		limit := l.Limit.Rates[0].Limit
		return twotier.Decision{Allowed: true, Limit: limit, Remaining: limit}, nil
	}
	value := policy.JoinParts(key)
	decision, err := l.engine.Acquire(ctx, twotier.Request{Value: value, Cost: cost})
	if err != nil {
		return twotier.Decision{}, fmt.Errorf("limit %s/%s: %w", name, limitName, err)
	}
	l.count(value, cost, decision)
	decision.Allowed = decision.Allowed || l.shadow
	return decision, nil
}

// mostOf returns the largest cost that all rates can admit.
func mostOf(rates []limiter.Rate) int64 {
	most := rates[0].Limit
	for _, r := range rates[1:] {
		most = min(most, r.Limit)
	}
	return most
}
