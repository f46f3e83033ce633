package pool

// find returns a holder's slot, or nowhere.
func (s *State) find(name string) int32 {
	if slot, known := s.slots[name]; known {
		return slot
	}
	return nowhere
}

// remove forgets a holder. The one with the last slot takes over its slot.
func (s *State) remove(slot int32) {
	s.discount(slot)
	h := &s.holders[slot]
	s.opinions.replace(&h.opinion, 0)
	s.queue.remove(s.holders, h.queued)
	delete(s.slots, h.name)
	if h.hungry {
		s.hungry.mark(slot, false)
	}
	last := int32(len(s.holders) - 1)
	if slot != last {
		s.move(last, slot)
	}
	s.holders[last] = holder{}
	s.holders = s.holders[:last]
	s.hungry = s.hungry[:last]
}

func (s *State) move(from, to int32) {
	h := s.holders[from]
	s.holders[to] = h
	s.slots[h.name] = to
	s.queue[h.queued].slot = to
	if h.hungry {
		s.hungry.mark(from, false)
		s.hungry.mark(to, true)
	}
}

// expire forgets all whose share has expired, in the order in which they did, by
// name where that is the same, and reports whether there were any.
func (s *State) expire() bool {
	before := len(s.holders)
	for len(s.queue) > 0 && s.queue[0].at <= s.now {
		first := s.queue[0]
		if expires := s.holders[first.slot].expires; expires > first.at {
			s.queue.postpone(s.holders, expires)
			continue
		}
		s.remove(first.slot)
	}
	return len(s.holders) < before
}
