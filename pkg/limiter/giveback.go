package limiter

// giveBack takes unspent units of a grant off again, if they still count in the
// meters they were granted from.
func (p Params) giveBack(s State, now Instant, c Command) (State, Result) {
	back := s
	if !p.takeOff(&back, now, c) {
		res := Result{Now: now, Algorithm: s.Algorithm, Reason: Forfeited}
		p.describe(s, now, c.Memory, &res)
		return s, res
	}
	res := Result{Now: now, Algorithm: s.Algorithm, Reason: Granted, Granted: c.Want}
	p.describe(back, now, c.Memory, &res)
	return back, res
}

// takeOff reports whether every meter could take the units off. What one meter of
// several granted alone does not come back.
func (p Params) takeOff(s *State, now Instant, c Command) bool {
	if p.Any || s.Algorithm.machine() != p.Algorithm.machine() && !s.Algorithm.WindowCoupled() {
		return false
	}
	if s.Algorithm.WindowCoupled() {
		return s.returnToWindows(c)
	}
	if c.Windows.N != s.N || c.At > now {
		return false
	}
	for i := range s.Slice() {
		m, w := &s.Meters[i], c.Windows.Open[i]
		if w.Limit != m.Limit || w.Window != m.Window || c.At < c.Memory.since(m.Window) {
			return false
		}
		if !p.takeOffMeter(m, now, c) {
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

func (p Params) takeOffMeter(m *Meter, now Instant, c Command) bool {
	if p.Algorithm.machine() == slidingMachine {
		return m.erase(p.spentBy(m.Rate, c.At), c.Want)
	}
	// Since the grant the bucket may have drained what an emptier one would not
	// have had to drain: only the rest would be missing without the grant.
	cost, drain := m.pace()
	if c.Want > p.brim(m.Rate)/cost {
		return false
	}
	drained := now.Sub(c.At)
	if int64(drained) > c.Want*cost/drain {
		return false
	}
	rest := c.Want*cost - int64(drained)*drain
	if rest <= 0 || rest > m.Used {
		return false
	}
	m.Used = max(int64(p.Lifetime)*drain, m.Used-rest)
	return true
}
