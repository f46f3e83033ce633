package limiter

// giveBack takes unspent units of a grant off again, if they still count in the
// meters they were granted from.
func (p Params) giveBack(s State, now Instant, c Command) (State, Result) {
	back, res := s, Result{Now: now, Algorithm: s.Algorithm, Reason: Forfeited}
	if p.takeOff(&back, now, c) {
		s = back
		res.Reason, res.Granted = Granted, c.Want
	}
	p.describe(s, now, c, &res)
	return s, res
}

// takeOff reports whether every meter could take the units off.
func (p Params) takeOff(s *State, now Instant, c Command) bool {
	switch {
	case p.waits(*s):
		return false
	case s.Algorithm.WindowCoupled():
		return s.returnToWindows(c) && p.returnOf(s, c)
	case p.Any:
		return false // each meter took a part that is not known any more
	case c.Windows.N != s.N || c.At > now || c.At <= s.Began:
		return false
	}
	for i := range s.Slice() {
		m, w := &s.Meters[i], c.Windows.Open[i]
		if w.Limit != m.Limit || w.Window != m.Window || c.At < c.Memory.since(m.Rate) || !p.takeOffMeter(m, now, c) {
			return false
		}
	}
	return true
}

func (s *State) returnToWindows(c Command) bool {
	if !s.Windows(0).SameWindows(c.Windows) {
		return false
	}
	for i := range s.Slice() {
		m := &s.Meters[i]
		if c.Want > m.Used || !c.Memory.covers(m.open().Start()) {
			return false
		}
		m.Used -= c.Want
	}
	return true
}

// returnOf takes the units off what the tenant was granted.
func (p Params) returnOf(s *State, c Command) bool {
	if !p.fair(*s) {
		return true
	}
	tenant := p.Fairness.account(*s, c.Tenant)
	if c.Want > s.usedBy(tenant) {
		return false
	}
	s.grant(tenant, -c.Want)
	return true
}

// takeOffMeter takes the units off a meter without windows.
func (p Params) takeOffMeter(m *Meter, now Instant, c Command) bool {
	if p.Algorithm.machine() == slidingMachine {
		return now < c.At.Add(m.Window) && m.erase(c.At, c.Want)
	}
	// Since the grant the bucket may have drained what an emptier one would not
	// have had to drain: only the rest would be missing without the grant.
	cost, drain := m.pace()
	if c.Want > p.brim(m.Rate)/cost {
		return false
	}
	drained := int64(now.Sub(c.At))
	if drained > c.Want*cost/drain {
		return false
	}
	rest := c.Want*cost - drained*drain
	if rest <= 0 || rest > m.Used {
		return false
	}
	m.Used = max(int64(p.Lifetime)*drain, m.Used-rest)
	return true
}
