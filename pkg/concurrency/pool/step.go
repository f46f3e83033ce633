package pool

import "github.com/weir-dev/weir/pkg/limiter"

// Step applies c at the instant now by the coordinator's clock, which may be behind
// that of the command before: the later one counts. It is Report and, of a beat that
// is not stale, Reallocate.
//
//	the holder has seen a share that this memory never issued     *BehindError
//	a beat of a holder that is not known or has expired           joins, share
//	a beat whose Seq exceeds those of all before                  share
//	any other beat of a holder that has not expired               the share it has
//	Leave whose Seq exceeds those of all before                   the holder is gone, 0
//
// A command or parameters that are not valid are an *InvalidError. An error changes
// nothing. Parameters with a lower Generation than some before are taken to be
// those.
func (s *State) Step(p Params, now limiter.Instant, c Command) (Grant, error) {
	slot, fresh, err := s.report(&p, now, &c)
	if err != nil {
		return Grant{}, err
	}
	if fresh {
		s.reallocate(slot)
	}
	if slot == nowhere {
		return s.farewell(c.Seq), nil
	}
	return s.grant(slot), nil
}

// Report is the first half of Step: it forgets holders that have expired and notes
// what the command says. It reports whether a share is to be found for the holder.
func (s *State) Report(p Params, now limiter.Instant, c Command) (bool, error) {
	_, fresh, err := s.report(&p, now, &c)
	return fresh, err
}

// Reallocate is the second half of Step: it issues to a holder that is known the
// share that is free for it now. It panics when the holder is not known.
func (s *State) Reallocate(holder string) Grant {
	slot := s.find(holder)
	s.reallocate(slot)
	return s.grant(slot)
}

const nowhere = -1 // the slot of a holder that is not known

func (s *State) report(p *Params, now limiter.Instant, c *Command) (slot int32, fresh bool, err error) {
	if err := c.Validate(); err != nil {
		return nowhere, false, err
	}
	slot = s.find(c.Holder)
	if s.behind(slot, c) {
		return nowhere, false, &BehindError{Term: c.Term}
	}
	if err := s.adopt(p); err != nil {
		return nowhere, false, err
	}
	s.now = max(s.now, now)
	s.observe(slot, c)
	if fresh = slot != nowhere && c.Seq > s.holders[slot].seq; fresh {
		s.refresh(slot, c)
	}
	if s.expire() {
		slot = s.find(c.Holder)
	}
	switch {
	case c.Op == Leave && fresh:
		s.remove(slot)
		slot, fresh = nowhere, false
	case c.Op == Leave:
	case slot == nowhere:
		slot, fresh = s.join(c), true
	case fresh:
		s.note(slot, c)
	}
	s.settle()
	return slot, fresh, nil
}

// behind reports whether a holder has seen a share that this memory does not
// remember to have issued.
func (s *State) behind(slot int32, c *Command) bool {
	if c.Term != s.term {
		return c.Term > s.term
	}
	if slot == nowhere || s.holders[slot].generation == 0 {
		return c.Applied > s.generation
	}
	return c.Applied > s.holders[slot].generation
}

// adopt takes over parameters unless newer ones are known.
func (s *State) adopt(p *Params) error {
	if *p == s.params || s.params.TTL > 0 && p.Generation < s.params.Generation {
		return nil
	}
	if err := p.Validate(); err != nil {
		return err
	}
	s.params = *p
	if s.quarantined() && p.Quarantine > s.waited { // the holder before knew of no TTL that long
		s.until, s.waited = s.until.Add(p.Quarantine-s.waited), p.Quarantine
	}
	if s.limit == 0 {
		s.limit = p.Initial
	}
	s.reserved = 0
	for i := range s.holders {
		s.reserved += s.reserve(&s.holders[i])
	}
	s.settle()
	return nil
}

// observe finds what the fleet can have had in flight up to now: what is reserved,
// and what the holder had beyond its reserve. A peak that does not exceed the one it
// reported last is not news: until it hears an answer a holder reports the same one
// again, when its reserve has fallen already.
func (s *State) observe(slot int32, c *Command) {
	own, most := int64(0), c.InFlight
	if slot != nowhere {
		h := &s.holders[slot]
		own = s.reserve(h)
		if c.Seq <= h.seq {
			most = 0
		} else if c.Peak > h.peak {
			most = c.Peak
		}
	}
	s.occupied, s.allowed = s.reserved+max(0, most-own), s.bound
	if s.quarantined() {
		s.allowed = max(s.allowed, s.occupied) // by a limit that was forgotten
	}
}

// refresh says how long the holder's next share lasts. While the holder enforces
// one of a memory before, others of that memory may still reach it. So what it has
// in flight is known only when it confirms one of this memory, and a share that it
// did not confirm ends with the quarantine.
func (s *State) refresh(slot int32, c *Command) {
	until := s.now.Add(s.params.TTL)
	if s.quarantined() && c.Term != s.term {
		until = min(until, s.until)
	}
	h := &s.holders[slot]
	h.expires = max(h.expires, until) // a share that was issued for longer may be in use that long
}

// join adds a holder. The units that it says it holds or has in flight are reserved:
// no share of this memory that it may have had before is in use any more, or it would
// not have expired.
func (s *State) join(c *Command) int32 {
	slot := int32(len(s.holders))
	s.slots[c.Holder] = slot
	s.holders = append(s.holders, holder{name: c.Holder, peak: c.Peak})
	s.hungry.grow()
	s.refresh(slot, c)
	s.queue.push(s.holders, slot)
	s.count(slot)
	s.note(slot, c)
	return slot
}

// note takes in what a holder reports. It confirms the share that it was issued
// last when it enforces it: no earlier one can be in use from now on. While it
// enforces one of a memory before, that may be in use until it confirms.
func (s *State) note(slot int32, c *Command) {
	s.discount(slot)
	h := &s.holders[slot]
	switch {
	case c.Term != s.term:
		h.unacked = max(h.unacked, c.Held)
	case h.generation > 0 && c.Applied >= h.generation:
		h.unacked = h.share
	case h.generation == 0:
		h.unacked = c.Held
	}
	h.seq, h.held, h.inFlight, h.peak = c.Seq, c.Held, c.InFlight, c.Peak
	s.opinions.replace(&h.opinion, c.Limit)
	s.count(slot)
}

// reallocate issues a share: what the holder is meant to have, if the reserves of
// all others leave it.
func (s *State) reallocate(slot int32) {
	share := s.target(slot)
	s.discount(slot)
	h := &s.holders[slot]
	share = min(share, s.limit-s.reserved)
	if s.quarantined() {
		share = min(share, h.held)
	}
	share = max(share, 0)
	if share != h.share || h.generation == 0 {
		s.generation++
		h.generation, h.share = s.generation, share
		h.unacked = max(h.unacked, share)
	}
	s.count(slot)
	s.settle()
}

// grant returns what is issued to a holder. The rest of its time is counted from when
// the command was sent, which is no later than now.
func (s *State) grant(slot int32) Grant {
	h := &s.holders[slot]
	g := s.farewell(h.seq)
	g.Generation, g.Share, g.TTL = h.generation, h.share, h.expires.Sub(s.now)
	return g
}

// farewell returns the pool to one that is not a holder.
func (s *State) farewell(seq int64) Grant {
	return Grant{
		Seq: seq, Term: s.term,
		Limit: s.limit, Holders: int64(len(s.holders)), Granted: s.granted, InFlight: s.inFlight,
		Occupied: s.occupied, Bound: s.allowed,
		Quarantined: max(0, s.until.Sub(s.now)),
	}
}
