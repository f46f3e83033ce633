package enforce

// toldOf returns the standing that the client of an admitted request sees: that of
// the limit with the least left, among those whose policies show it. It is nil, and
// costs nothing, when there is none.
func toldOf(taken []share) *Standing {
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
	standing := standingOf(*tightest, nil)
	return &standing
}

// Standing returns what the limit that refused says of the request.
func (r *Refusal) Standing() Standing { return standingOf(share{}, r) }
