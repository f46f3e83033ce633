package limiter

// adopt returns the state in force at now: the parameters' rates are taken over,
// and what counts no longer is dropped.
//
//	the state has          the parameters name     in force
//	windows                the same windows        the new limit, with the count
//	windows                other windows, or an    the old windows and limits until the last of
//	                       algorithm without       them ends; only then what is new
//	no windows             the same machine        the new rates at once, with what is in use
//	no windows             another machine         nothing until the last grant has expired, then
//	                                               the new rates with what is in use
//
// So at every instant one contract is in force, and each grant counts in it.
func (p Params) adopt(s State, now Instant, m Memory) State {
	old := s.Algorithm.machine()
	switch {
	case s.N == 0:
		s.Algorithm = p.Algorithm
		p.begin(&s, now, func(Rate) int64 { return 0 })
	case old == windowMachine:
		p.roll(&s, now)
	case old == p.Algorithm.machine():
		p.convert(&s, now)
	case now < s.Expires:
	default:
		used := s.inUse(now)
		s.Algorithm = p.Algorithm
		p.begin(&s, now, func(Rate) int64 { return used })
	}
	s.Generation = p.Generation
	if s.Algorithm.machine() == p.Algorithm.machine() {
		for i := range s.Slice() {
			p.advance(&s.Meters[i], now, m)
		}
	}
	s.beat()
	return s
}

// begin replaces the meters by new ones of the parameters, in each of which so
// many units are in use.
func (p Params) begin(s *State, now Instant, used func(Rate) int64) {
	s.N, s.Meters = 0, [MaxRates]Meter{}
	for _, r := range p.Rates {
		s.add(p.meter(r, now, used(r)))
	}
}

// meter returns a new meter with so many units in use.
func (p Params) meter(r Rate, now Instant, used int64) Meter {
	m := Meter{Rate: r}
	switch p.Algorithm.machine() {
	case windowMachine:
		m.Index, m.Used = r.index(now), used
	case slidingMachine:
		if used > 0 {
			m.Log = []Entry{{At: p.spentBy(r, now), Count: used}}
		}
	case bucketMachine:
		cost, _ := r.pace()
		m.Index, m.Used = int64(now), min(used, MaxExact/cost)*cost
	}
	return m
}

// roll carries windows on: those that ended start anew or are dropped, and the
// parameters' rates are taken over.
func (p Params) roll(s *State, now Instant) {
	var next State
	named := func(r Rate) *Meter {
		if !p.Algorithm.WindowCoupled() {
			return nil
		}
		return s.find(r)
	}
	for _, r := range p.Rates {
		if w := named(r); w != nil {
			v := Meter{Rate: r, Index: r.index(now)}
			if w.Index == v.Index {
				v.Used = w.Used
			}
			next.add(v)
		}
	}
	leftover := false
	for _, w := range s.Slice() {
		if w.open().Contains(now) && next.find(w.Rate) == nil {
			next.add(w)
			leftover = true
		}
	}
	if leftover {
		s.N, s.Meters = next.N, next.Meters
		return
	}
	// next holds only windows of p, so starting over in the order of p keeps all.
	s.Algorithm = p.Algorithm
	p.begin(s, now, func(r Rate) int64 {
		if w := next.find(r); w != nil {
			return w.Used
		}
		return 0
	})
}

// convert takes over other rates of the same machine. A rate that stays as it is
// keeps its meter; the others begin with what is in use.
func (p Params) convert(s *State, now Instant) {
	old := *s
	used := s.inUse(now)
	s.Algorithm = p.Algorithm
	s.N, s.Meters = 0, [MaxRates]Meter{}
	for _, r := range p.Rates {
		m := old.find(r)
		switch {
		case m == nil:
			s.add(p.meter(r, now, used))
		case p.Algorithm.machine() == slidingMachine || m.Limit == r.Limit:
			kept := *m
			kept.Rate = r
			s.add(kept)
		default:
			s.add(p.meter(r, now, m.inUse(old.Algorithm, now)))
		}
	}
}

// inUse returns how many units of a meter count at now, at most.
func (s State) inUse(now Instant) int64 {
	var used int64
	for _, m := range s.Slice() {
		used = max(used, m.inUse(s.Algorithm, now))
	}
	return used
}

func (m Meter) inUse(a Algorithm, now Instant) int64 {
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

// advance brings a meter of the parameters' machine to now.
func (p Params) advance(m *Meter, now Instant, memory Memory) {
	switch p.Algorithm.machine() {
	case windowMachine:
	case slidingMachine:
		m.Log = m.alive(now)
	case bucketMachine:
		p.settle(m, now, memory)
	}
}

// beat counts the holders of a new shortest window from zero.
func (s *State) beat() {
	if !s.Algorithm.WindowCoupled() {
		s.Pulse, s.Asked, s.Before = 0, 0, 0
		return
	}
	shortest := s.Meters[0]
	for _, m := range s.Slice() {
		if m.Window < shortest.Window {
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

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
