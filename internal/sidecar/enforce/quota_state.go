package enforce

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A QuotaState is what one limit, which is not in shadow, says of a descriptor. It is
// zero while no limit applies.
type QuotaState struct {
	Policy   *policy.Policy
	Limit    *policy.Limit
	Params   limiter.Params // what the limit works the counter by
	Decision twotier.Decision
	Refusal  *Refusal // nil when the limit admits the descriptor
	cost     int64    // that was taken
}

// quotaStateOf returns what the limit says whose answer that is. In shadow it says
// nothing.
func quotaStateOf(s share, refusal *Refusal) QuotaState {
	switch {
	case refusal != nil:
		return QuotaState{Policy: refusal.Policy, Limit: refusal.Limit, Params: refusal.Params, Decision: refusal.Decision, Refusal: refusal}
	case s.limit == nil || s.limit.shadow:
		return QuotaState{}
	default:
		return QuotaState{Policy: s.limit.Policy, Limit: s.limit.Limit, Params: s.limit.params(s.value), Decision: s.decision, cost: s.cost}
	}
}

// Binds reports whether the state binds more than another of the same request. A
// refusal binds more than an admission, a refusal that lasts longer more than another,
// and an admission that leaves less more than another. A zero state binds nothing.
func (s QuotaState) Binds(other QuotaState) bool {
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
func (s *QuotaState) giveBack() {
	s.Decision.Remaining += s.cost
	s.cost = 0
}

// forGood reports whether it does not help to wait.
func (s QuotaState) forGood() bool {
	return s.Refusal.Cause == KeyMissing || s.Refusal.Cause == CostTooLarge
}

// shownOf returns the state that the client of an admitted request sees: that of
// the limit with the least left, among those whose policies show it. It is nil, and
// costs nothing, when there is none.
func shownOf(taken []share) *QuotaState {
	var tightest *share
	for i := range taken {
		s := &taken[i]
		if s.limit.shadow || !s.limit.Policy.Response.Shows(s.decision.Remaining, s.decision.Limit) {
			continue
		}
		if tightest == nil || s.decision.Remaining < tightest.decision.Remaining {
			tightest = s
		}
	}
	if tightest == nil {
		return nil
	}
	state := quotaStateOf(*tightest, nil)
	return &state
}

// State returns what the limit that refused says of the request.
func (r *Refusal) State() QuotaState { return quotaStateOf(share{}, r) }
