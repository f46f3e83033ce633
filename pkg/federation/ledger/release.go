package ledger

// release takes back what the holder gave up, if it belongs to this window and
// memory. Otherwise others may have been granted the window by the count before.
func (s *State) release(p *Params, m Member, c *Command) Grant {
	t := s.attend(p, m, c)
	i, known := s.account(c.Member, c.Holder)
	reason := Granted
	if c.Epoch != s.Epoch() {
		reason = Forfeited
	}
	if known {
		granted := s.Accounts[i].Granted
		if reason == Granted {
			granted = min(granted, c.Granted)
		}
		s.book(c, granted)
	}
	if reason == Granted {
		t.settle(s.has(p, m), c.Demand)
	}
	return s.answer(p, m, c, reason)
}
