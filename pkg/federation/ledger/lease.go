package ledger

// lease grants units. Units that were granted count, whether the holder heard of them
// or not.
func (s *State) lease(p *Params, m Member, c *Command) Grant {
	var had, heard int64
	i, known := s.account(c.Member, c.Holder)
	if known {
		had = s.Accounts[i].Granted
	}
	if c.Epoch == s.Epoch() {
		heard = c.Granted
	}
	least, more := max(0, heard+c.Min-had), max(0, heard+c.Want-had)
	t := s.attend(p, m, c)
	t.want(s.has(p, m)+more, c.Demand)
	switch {
	case s.forgot(p, c):
		return s.answer(p, m, c, Amnesia)
	case !known && len(s.of(c.Member)) >= MaxHolders:
		return s.answer(p, m, c, Crowded)
	}
	free := max(0, s.Limit-s.taken(p))
	grant := min(more, s.room(p, m), max(least, s.guide(free)))
	reason := Granted
	switch {
	case grant >= least:
	case free < least:
		grant, reason = 0, Exhausted
	default:
		grant, reason = 0, Kept
	}
	if reserve := s.lacks(p, grant); reserve > 0 {
		g := s.answer(p, m, c, Unreserved)
		g.Reserve, g.RetryAfter = reserve, 0
		return g
	}
	s.book(c, had+grant)
	return s.answer(p, m, c, reason)
}

// guide returns the most that one lease should take, so that the last units are not
// stranded with those that asked first: a part of what is left (Polychronopoulos and
// Kuck 1987, guided self-scheduling; half of each active member's, as members have
// several leases to go).
func (s *State) guide(free int64) int64 {
	var active int64
	for _, t := range s.Standings {
		if t.Demand > 0 || t.Before > 0 {
			active++
		}
	}
	return (free + 2*active - 1) / (2 * active) // the one that asks is active
}
