package enforce

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Cause says why a request is refused.
type Cause uint8

// The causes.
const (
	QuotaExceeded    Cause = iota + 1 // the limit is reached
	StoreUnavailable                  // the store is away and the policy refuses meanwhile
	KeyMissing                        // the request lacks a part of the key
)

// A Verdict answers a request. The zero verdict refuses.
type Verdict struct {
	Allowed bool
	Refusal *Refusal // nil when allowed
}

// A Refusal says which limit refused a request and why.
type Refusal struct {
	Cause    Cause
	Policy   *policy.Policy
	Limit    *policy.Limit
	Decision twotier.Decision // of QuotaExceeded and StoreUnavailable
	Missing  policy.KeyPart   // of KeyMissing
}

// A share is what one limit decided about a request that others judge too.
type share struct {
	limit    *limit
	value    string
	decision twotier.Decision
}

// Decide asks every limit that applies to r for one unit. A request is let
// through only when all of them admit it; what some admitted before another
// refused is taken back and not counted. An error means that no decision was
// reached by a defect or because ctx is done: the request must not pass.
func (e *Enforcer) Decide(ctx context.Context, r *http.Request) (Verdict, error) {
	if e.cfg.Mode == Bypass {
		return Verdict{Allowed: true}, nil
	}
	t := e.enter()
	defer t.leave()
	if t.closed {
		return Verdict{}, errClosed
	}
	var few [4]share
	taken := few[:0]
	request := policy.NewRequest(r)
	for _, l := range t.limits {
		if !l.Matches(request) {
			continue
		}
		value, outcome, missing := l.Value(request)
		switch outcome {
		case policy.Skipped:
			continue
		case policy.Rejected:
			l.counts.Count(time.Now(), count.Event{Outcome: count.KeyMissing})
			if l.shadow {
				continue
			}
			cancel(taken)
			return Verdict{Refusal: l.refusal(KeyMissing, twotier.Decision{}, missing)}, nil
		default:
		}
		decision, err := l.engine.Acquire(ctx, twotier.Request{Value: value, Cost: 1})
		if err != nil {
			cancel(taken)
			return Verdict{}, fmt.Errorf("limit %s/%s/%s: %w", l.Policy.Namespace, l.Policy.Name, l.Limit.Name, err)
		}
		if !decision.Allowed && !l.shadow {
			cancel(taken)
			l.count(value, 1, decision)
			return Verdict{Refusal: l.refusal(causeOf(decision), decision, policy.KeyPart{})}, nil
		}
		taken = append(taken, share{limit: l, value: value, decision: decision})
	}
	for i := range taken {
		taken[i].limit.count(taken[i].value, 1, taken[i].decision)
	}
	return Verdict{Allowed: true}, nil
}

func cancel(taken []share) {
	for i := range taken {
		taken[i].decision.Cancel()
	}
}

func causeOf(d twotier.Decision) Cause {
	if d.Source == twotier.FromFailureAction {
		return StoreUnavailable
	}
	return QuotaExceeded
}

func (l *limit) refusal(c Cause, d twotier.Decision, missing policy.KeyPart) *Refusal {
	return &Refusal{Cause: c, Policy: l.Policy, Limit: l.Limit, Decision: d, Missing: missing}
}

// count counts what the limit decided, or in shadow would have decided.
func (l *limit) count(value string, cost int64, d twotier.Decision) {
	l.counts.Count(time.Now(), count.Event{
		Outcome:    l.outcome(d),
		Value:      value,
		Cost:       cost,
		Windows:    d.Windows,
		EndsIn:     d.ResetAfter,
		Local:      d.Source == twotier.FromLocalShare || d.Source == twotier.FromFailureAction,
		LocalShare: d.LocalShare,
	})
}

func (l *limit) outcome(d twotier.Decision) count.Outcome {
	unavailable := d.Source == twotier.FromFailureAction
	switch {
	case d.Allowed && unavailable:
		return count.FailedOpen
	case d.Allowed:
		return count.Admitted
	case l.shadow:
		return count.ShadowRefused
	case unavailable:
		return count.FailedClosed
	default:
		return count.Refused
	}
}
