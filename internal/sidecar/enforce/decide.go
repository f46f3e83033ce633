package enforce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Cause says why a request is refused.
type Cause uint8

// The causes.
const (
	QuotaExceeded    Cause = iota + 1 // the limit is reached
	StoreUnavailable                  // the store does not answer, and the policy refuses meanwhile or has no share yet
	StoreDraining                     // the policy is moving to another store
	KeyMissing                        // the request lacks a part of the key
	CostTooLarge                      // the request costs more than the limit ever admits
)

// A Verdict answers a request. The zero verdict refuses.
type Verdict struct {
	Allowed bool
	Refusal *Refusal // nil when allowed
	// Admission is what is left to do for a request that is allowed, nil when that is
	// nothing.
	Admission *Admission
	// Shown is what the client sees of a limit that admitted the request, nil for
	// nothing.
	Shown *QuotaState
}

// A Refusal says which limit refused a request and why. Of alternatives it is the one that may
// admit the request soonest.
type Refusal struct {
	Cause    Cause
	Policy   *policy.Policy
	Limit    *policy.Limit
	Params   limiter.Params   // of QuotaExceeded: what the limit works the counter by
	Decision twotier.Decision // of QuotaExceeded, StoreUnavailable and StoreDraining
	Missing  policy.KeyPart   // of KeyMissing
	Value    string           // of the key: the counter that refuses; empty where it has none

	Cost, Most int64 // of CostTooLarge: what the request costs, and the most that is ever admitted
}

// wait is after how long the request may be admitted.
func (r *Refusal) wait() time.Duration {
	if r.Decision.RetryAfter == 0 {
		return math.MaxInt64
	}
	return r.Decision.RetryAfter
}

// Decide asks every limit that applies to r for what r costs. A request is let
// through only when all of them admit it, and of alternatives one; what some admitted before another
// refused is taken back and not counted. Limits in shadow are asked last, about
// requests that the others let through, and refuse nothing. An error means that no
// decision was reached by a defect or because ctx is done: the request must not
// pass.
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
	for _, a := range t.asked {
		more, refusal, err := a.ask(ctx, e, &request, taken)
		if err != nil {
			cancel(taken)
			return Verdict{}, err
		}
		if refusal != nil {
			cancel(taken)
			return Verdict{Refusal: refusal}, nil
		}
		taken = more
	}
	return Verdict{Allowed: true, Admission: admit(taken), Shown: shownOf(taken)}, nil
}

// undecided returns the error of a decision that the limit did not reach. Without one
// in shadow the others decide.
func (e *Enforcer) undecided(ctx context.Context, l *limit, err error) error {
	switch {
	case err == nil, errors.Is(err, twotier.ErrNotHeld):
		return err
	case l.shadow && ctx.Err() == nil:
		e.cfg.Log.Error("a limit in shadow did not decide", "limit", l.scope.String(), "error", err)
		return nil
	default:
		return fmt.Errorf("limit %s/%s/%s: %w", l.Policy.Namespace, l.Policy.Name, l.Limit.Name, err)
	}
}

// admit counts a request that all limits admitted, unless its turn is still to come,
// and returns what is left to do for it.
func admit(taken []share) *Admission {
	admission := admissionOf(taken)
	if admission.Delay() == 0 {
		countAll(taken)
	}
	return admission
}

// An answer is what a limit says of a request, before that is counted. The zero answer is that of
// a limit that has no say in it.
type answer struct {
	share
	missing *policy.KeyPart // which the request lacks, so that it may not be sent; nil otherwise
	of      []int           // the descriptors of a call that it is about
}

// admits reports whether the limit lets the request pass, at least for its part.
func (a *answer) admits() bool { return a.missing == nil && (a.limit == nil || a.decision.Allowed) }

// judge counts a refusal and returns it, unless the limit is in shadow.
func (a *answer) judge() (share, *Refusal) {
	switch {
	case a.missing != nil:
		return share{}, a.limit.reject(&Refusal{Cause: KeyMissing, Missing: *a.missing}, count.KeyMissing)
	case a.limit == nil:
		return share{}, nil
	default:
		return a.limit.judge(a.share)
	}
}

// applies reports whether the limit matches a request, and notes that.
func (l *limit) applies(r *policy.Request) bool {
	if !l.Matches(r) {
		l.matching.miss()
		return false
	}
	l.matching.match()
	return true
}

// ask asks the limit about a request.
func (l *limit) ask(ctx context.Context, r *policy.Request) (answer, error) {
	value, outcome, missing := l.Value(r)
	switch outcome {
	case policy.Skipped:
		return answer{}, nil
	case policy.Rejected:
		return answer{share: share{limit: l}, missing: new(missing)}, nil
	default:
		return l.acquire(ctx, twotier.Request{Value: value, Tenant: l.Tenant(r), Cost: l.Cost(r)})
	}
}

// acquire asks the counter of a value.
func (l *limit) acquire(ctx context.Context, r twotier.Request) (answer, error) {
	d, err := l.engine.Acquire(ctx, r)
	if err != nil {
		return answer{}, err
	}
	return answer{share: share{limit: l, value: r.Value, cost: r.Cost, decision: d}}, nil
}

// judge makes a share that the counter refused a refusal, unless the limit is in
// shadow.
func (l *limit) judge(s share) (share, *Refusal) {
	switch {
	case s.decision.Allowed:
		return s, nil
	case l.neverAdmits(s.value, s.cost, s.decision):
		return share{}, l.reject(&Refusal{Cause: CostTooLarge, Value: s.value, Cost: s.cost, Most: l.params(s.value).MostAtOnce()}, count.CostTooLarge)
	case l.shadow:
		return s, nil
	default:
		l.counts.Count(time.Now(), s.event())
		return share{}, l.refuse(&Refusal{
			Cause: causeOf(s.decision), Value: s.value, Decision: s.decision, Params: l.params(s.value),
		})
	}
}

// neverAdmits reports whether d refuses a request that is never admitted. A refusal
// that is remembered does not say so.
func (l *limit) neverAdmits(value string, cost int64, d twotier.Decision) bool {
	return d.Reason == limiter.TooLarge || cost > 1 && cost > l.params(value).MostAtOnce()
}

// reject counts a request that may not be sent, and returns its refusal unless the
// limit is in shadow.
func (l *limit) reject(why *Refusal, o count.Outcome) *Refusal {
	l.counts.Count(time.Now(), count.Event{Outcome: o})
	if l.shadow {
		return nil
	}
	return l.refuse(why)
}

func (l *limit) refuse(why *Refusal) *Refusal {
	why.Policy, why.Limit = l.Policy, l.Limit
	return why
}
