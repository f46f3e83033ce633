package enforce

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A Standing is what one limit, which is not in shadow, says of a descriptor. It is
// zero while no limit applies.
type Standing struct {
	Policy   *policy.Policy
	Limit    *policy.Limit
	Params   limiter.Params // what the limit works the counter by
	Decision twotier.Decision
	Refusal  *Refusal // nil when the limit admits the descriptor
	cost     int64    // that was taken
}

// standingOf returns what the limit says whose answer that is. In shadow it says
// nothing.
func standingOf(s share, refusal *Refusal) Standing {
	switch {
	case refusal != nil:
		return Standing{Policy: refusal.Policy, Limit: refusal.Limit, Params: refusal.Params, Decision: refusal.Decision, Refusal: refusal}
	case s.limit == nil || s.limit.shadow:
		return Standing{}
	default:
		return Standing{Policy: s.limit.Policy, Limit: s.limit.Limit, Params: s.limit.params(s.value), Decision: s.decision, cost: s.cost}
	}
}

// Binds reports whether the standing binds more than another of the same request. A
// refusal binds more than an admission, a refusal that lasts longer more than another,
// and an admission that leaves less more than another. A zero standing binds nothing.
func (s Standing) Binds(other Standing) bool {
	switch {
	case s.Limit == nil || other.Limit == nil:
		return s.Limit != nil
	case s.Refusal == nil && other.Refusal == nil:
		return s.Decision.Remaining < other.Decision.Remaining
	case s.Refusal == nil || other.Refusal == nil:
		return s.Refusal != nil
	default:
		return !other.forGood() && (s.forGood() || s.Decision.RetryAfter > other.Decision.RetryAfter)
	}
}

// giveBack returns of an admission how it stands once what was taken is given back.
func (s *Standing) giveBack() {
	s.Decision.Remaining += s.cost
	s.cost = 0
}

// forGood reports whether it does not help to wait.
func (s Standing) forGood() bool {
	return s.Refusal.Cause == KeyMissing || s.Refusal.Cause == CostTooLarge
}
