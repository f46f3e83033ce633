package limiter

// adopt returns the state in force at now: the parameters' rates are taken over,
// and what counts no longer is dropped.
//
//	the state has          the parameters name     in force
//	windows                the same windows        the new limit, with the count
//	windows                other windows, or an    the old windows and limits until the last of
//	                       algorithm without       them ends; only then what is new
//	no windows             the same machine        the new rates at once, with what is in use
//	no windows             another machine, or     nothing until the last grant has expired, then
//	                       another leaky bucket    the new rates with what may have been spent in
//	                                               the time that they look back on
//
// So at every instant one contract is in force, and each grant counts in it.
func (p *Params) adopt(s *State, now Instant, m *Memory) {
	before := s.Meters[0]
	switch {
	case p.goesOn(s, now):
	case s.N == 0:
		p.begin(s, now)
	case s.Algorithm.WindowCoupled():
		p.roll(s, now)
	case p.follows(s):
		p.convert(s, now)
	case now > s.Expires:
		p.succeed(s, now)
	}
	s.Generation = p.Generation
	p.advance(s, now, m)
	switch first := s.Meters[0]; {
	case !p.fair(s) || !first.sameWindows(before.Rate):
		s.Tenants = nil
	case first.Index == before.Index:
	case first.Index == before.Index+1:
		s.Tenants = p.Fairness.lately(s.Tenants)
	default:
		s.Tenants = nil
	}
	s.beat()
}

// goesOn reports whether the meters are those of the parameters as they are.
func (p *Params) goesOn(s *State, now Instant) bool {
	if s.Algorithm != p.Algorithm || s.Generation != p.Generation || s.N != len(p.Rates) {
		return false
	}
	for i, r := range p.Rates {
		m := &s.Meters[i]
		if m.Rate != r || s.Algorithm.WindowCoupled() && r.index(now) != m.Index {
			return false
		}
	}
	return true
}

// follows reports whether the parameters go on with the meters of the state. What
// waits in a leaky bucket leaves at its rate, so no other may follow before it left.
func (p *Params) follows(s *State) bool {
	if s.Algorithm != LeakyBucket && p.Algorithm != LeakyBucket {
		return s.Algorithm.machine() == p.Algorithm.machine()
	}
	if s.Algorithm != p.Algorithm || s.N != len(p.Rates) {
		return false
	}
	for _, r := range p.Rates {
		if m := s.find(r); m == nil || m.Limit != r.Limit {
			return false
		}
	}
	return true
}

// waits reports whether nothing is granted until the grants of meters that the
// parameters cannot go on with have expired.
func (p *Params) waits(s *State) bool { return !s.Algorithm.WindowCoupled() && !p.follows(s) }

// begin replaces the meters by new ones of the parameters.
func (p *Params) begin(s *State, now Instant) {
	s.Algorithm, s.N, s.Meters = p.Algorithm, 0, [MaxRates]Meter{}
	for _, r := range p.Rates {
		s.add(p.meter(r, now, 0))
	}
}

// meter returns a new meter in which that many units are in use that may be spent up
// to the instant.
func (p *Params) meter(r Rate, expires Instant, used int64) Meter {
	m := Meter{Rate: r, Index: int64(expires)}
	switch p.Algorithm.machine() {
	case windowMachine:
		m.Index, m.Used = r.index(expires), used
	case slidingMachine:
		if used > 0 {
			m.Log = []Entry{{At: p.spentBy(r, expires), Count: used}}
		}
	case bucketMachine:
		m.fill(used)
	}
	return m
}

// roll carries windows on: those that ended start again or are dropped, and the
// parameters' rates are taken over.
func (p *Params) roll(s *State, now Instant) {
	var next State
	for _, r := range p.Rates {
		w := s.find(r)
		if w == nil || !p.Algorithm.WindowCoupled() {
			continue
		}
		v := Meter{Rate: r, Index: r.index(now)}
		if w.Index == v.Index {
			v.Used = w.Used
		}
		next.add(v)
	}
	leftover := false
	for i := range s.Slice() {
		w := &s.Meters[i]
		if w.open().Contains(now) && next.find(w.Rate) == nil {
			next.add(*w)
			leftover = true
		}
	}
	if leftover {
		s.N, s.Meters = next.N, next.Meters
		return
	}
	// next holds only windows of p, so starting over in the order of p keeps all.
	if !p.Algorithm.WindowCoupled() {
		s.Began = now
	}
	p.begin(s, now)
	for i := range s.Slice() {
		if w := next.find(s.Meters[i].Rate); w != nil {
			s.Meters[i] = *w
		}
	}
}

// convert takes over other rates of the same machine. A rate that stays as it is
// keeps its meter; the others begin with what is in use, as if it were spent as
// late as it may be.
func (p *Params) convert(s *State, now Instant) {
	old, expires := *s, max(now, s.Expires)
	if p.Generation > s.Generation {
		s.Began = now
	}
	s.Algorithm, s.N, s.Meters = p.Algorithm, 0, [MaxRates]Meter{}
	for _, r := range p.Rates {
		m := old.find(r)
		switch {
		case m == nil:
			s.add(p.meter(r, expires, old.inUse(now)))
		case p.Algorithm.machine() == slidingMachine || m.Limit == r.Limit:
			kept := *m
			kept.Rate = r
			s.add(kept)
		default:
			s.add(p.meter(r, expires, m.inUse(old.Algorithm, now)))
		}
	}
}

// inUse returns how many units count at now of the meter with the most.
func (s *State) inUse(now Instant) int64 {
	var used int64
	for i := range s.Slice() {
		used = max(used, s.Meters[i].inUse(s.Algorithm, now))
	}
	return used
}

// inUse returns how many units of a meter count at now, at most.
func (m *Meter) inUse(a Algorithm, now Instant) int64 {
	switch a.machine() {
	case slidingMachine:
		return sum(m.alive(now))
	case bucketMachine:
		cost, drain := m.pace()
		return ceilDiv(m.drainTo(now, drain, 0), cost)
	default:
		return m.Used
	}
}

// advance brings meters without windows, which the parameters go on with, to now.
func (p *Params) advance(s *State, now Instant, memory *Memory) {
	if s.Algorithm.WindowCoupled() || p.waits(s) {
		return
	}
	for i := range s.Slice() {
		m := &s.Meters[i]
		if s.Algorithm.machine() == slidingMachine {
			m.Log, m.Index = m.alive(now), max(m.Index, int64(now))
		} else {
			p.settle(m, now, memory)
		}
	}
}

// beat counts the holders of a new shortest window from zero.
func (s *State) beat() {
	if !s.Algorithm.WindowCoupled() {
		s.Pulse, s.Asked, s.Before = 0, 0, 0
		return
	}
	shortest := &s.Meters[0]
	for i := range s.Slice() {
		if m := &s.Meters[i]; m.Window < shortest.Window {
			shortest = m
		}
	}
	switch shortest.Index {
	case s.Pulse:
	case s.Pulse + 1:
		s.Pulse, s.Before, s.Asked = shortest.Index, s.Asked, 0
	default:
		s.Pulse, s.Before, s.Asked = shortest.Index, 0, 0
	}
}
