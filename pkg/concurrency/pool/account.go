package pool

// reserve returns what the others have to leave to a holder.
func (s *State) reserve(h *holder) int64 {
	if s.params.Handoff == Occupancy {
		return max(h.share, h.inFlight)
	}
	return max(h.unacked, h.inFlight)
}

// discount takes a holder out of the sums before it changes.
func (s *State) discount(slot int32) {
	h := &s.holders[slot]
	s.reserved -= s.reserve(h)
	s.granted -= h.share
	s.inFlight -= h.inFlight
	if !h.hungry {
		s.modest -= h.inFlight + 1
	}
}

// count adds a holder to the sums after it changed.
func (s *State) count(slot int32) {
	h := &s.holders[slot]
	s.reserved += s.reserve(h)
	s.granted += h.share
	s.inFlight += h.inFlight
	if hungry := h.inFlight >= h.share; hungry != h.hungry {
		h.hungry = hungry
		s.hungry.mark(slot, hungry)
	}
	if !h.hungry {
		s.modest += h.inFlight + 1
	}
}

// settle finds the limit and what the fleet may have in flight by it and by those
// before it that it has not drained from yet. In a quarantine nobody is granted
// more than holders were by the memory before, whose limit is not known.
func (s *State) settle() {
	s.limit = min(max(s.opinions.aggregate(s.params.Aggregate, s.limit), s.params.Min), s.params.Max)
	if s.reserved <= s.limit {
		s.bound = s.limit
		return
	}
	s.bound = max(s.bound, s.limit)
	if s.quarantined() {
		s.bound = max(s.bound, s.reserved)
	}
}
