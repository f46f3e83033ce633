package ledger

// lacks returns up to what units have to be set aside before grant more are granted,
// 0 when enough are. A block is counted from what is granted, so that what is set aside
// and not granted, which a crash forfeits, is never more than a block or the grant.
func (s *State) lacks(p *Params, grant int64) int64 {
	used := s.Before + s.granted() + grant
	if p.Block == 0 || used <= max(s.Reserved, s.Before) || grant == 0 {
		return 0
	}
	slices := s.taken(p) - s.Before - s.granted()
	return max(used, min(used-grant+p.Block, s.Limit-slices))
}

// reserve notes that units of the open window are set aside.
func (s *State) reserve(c *Command) Grant {
	g := Grant{Reason: Forfeited, Epoch: s.Epoch(), Limit: s.Limit, ExpiresIn: s.end().Sub(s.Latest), Now: s.Latest}
	if c.Epoch == s.Epoch() {
		g.Reason = Granted
		s.Reserved = max(s.Reserved, c.Granted)
	}
	return g
}
