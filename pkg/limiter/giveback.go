package limiter

// giveBack takes unspent units of a grant off again, if they still count in the
// meters they were granted from.
func (p *Params) giveBack(s *State, now Instant, c *Command, res *Result) {
	back := *s
	res.Reason = Forfeited
	if p.takeOff(&back, now, c) {
		*s = back
		res.Reason, res.Granted = Granted, c.Want
	}
	p.describe(s, now, c, res)
}

// takeOff reports whether every meter could take the units off.
func (p *Params) takeOff(s *State, now Instant, c *Command) bool {
	switch {
	case p.waits(s), s.Began > 0 && c.At <= s.Began:
		return false
	case s.Algorithm.WindowCoupled():
		return s.returnToWindows(c) && p.returnOf(s, c)
	case s.Algorithm == LeakyBucket:
		return false // those behind a place in a queue have heard when to leave
	case c.Windows.N != s.N || c.At > now:
		return false
	}
	for i := range s.Slice() {
		m, w := &s.Meters[i], c.Windows.Open[i]
		if w.Limit != m.Limit || w.Window != m.Window || c.At < p.returnable(m.Rate, now, &c.Memory) || !p.takeOffMeter(m, c) {
			return false
		}
	}
	return true
}

// returnable returns the instant before which nothing that was granted counts by itself.
func (p *Params) returnable(r Rate, now Instant, m *Memory) Instant {
	since := m.since(r)
	if p.Algorithm.machine() == bucketMachine {
		since = max(since, m.changed(r, now))
	}
	return since
}

func (s *State) returnToWindows(c *Command) bool {
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
func (p *Params) returnOf(s *State, c *Command) bool {
	if !p.fair(s) {
		return true
	}
	tenant := p.Fairness.account(s, c.Tenant)
	if c.Want > s.usedBy(tenant) {
		return false
	}
	s.grant(tenant, -c.Want)
	return true
}

// takeOffMeter takes the units off a meter without windows, which was brought to
// Index: a clock that stepped back since does not bring back what was dropped.
func (p *Params) takeOffMeter(m *Meter, c *Command) bool {
	age := Instant(m.Index).Sub(c.At)
	if p.Algorithm.machine() == slidingMachine {
		return age < m.Window && m.erase(c.At, c.Want)
	}
	// Since the grant the bucket may have drained what an emptier one would not
	// have had to drain: only the rest would be missing without the grant.
	cost, drain := m.pace()
	if c.Want > MaxExact/cost || int64(age) > c.Want*cost/drain {
		return false
	}
	rest := c.Want*cost - int64(age)*drain
	if rest <= 0 || rest > m.Used {
		return false
	}
	m.Used = max(int64(p.Lifetime)*drain, m.Used-rest)
	return true
}
