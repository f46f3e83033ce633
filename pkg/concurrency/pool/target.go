package pool

// target returns what a holder is meant to have of the limit.
func (s *State) target(slot int32) int64 {
	if s.params.Allocation == DemandProportional {
		return s.demanded(slot)
	}
	return part(s.limit, int64(len(s.holders)), int64(slot))
}

// demanded splits what those that do not use their share up leave over those that do.
// The former keep one more than they have in flight. Every holder is meant to have
// something, so that it can show that it wants more.
func (s *State) demanded(slot int32) int64 {
	h := &s.holders[slot]
	if !h.hungry {
		return h.inFlight + 1
	}
	spare := max(0, s.limit-s.modest)
	hungry := s.hungry.below(int32(len(s.holders)))
	return max(1, part(spare, hungry, s.hungry.below(slot)))
}

// part splits a whole so that parts differ by one at most: the first have more.
func part(whole, parts, i int64) int64 {
	if i < whole%parts {
		return whole/parts + 1
	}
	return whole / parts
}
