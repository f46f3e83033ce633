package limiter

// recalled is the number of parts in which a sliding sum that follows a bucket
// takes over what may have been spent.
const recalled = 16

// succeed begins the parameters' rates where meters of another machine were. Each
// takes over the most that may have been spent in the time it looks back on, so that
// grants from now on and those before do not add up to more than either promises.
func (p *Params) succeed(s *State, now Instant) {
	old := *s
	s.Began = now
	p.begin(s, now)
	for i := range s.Slice() {
		m := &s.Meters[i]
		switch p.Algorithm.machine() {
		case windowMachine:
			m.Used = old.spent(now, now.Sub(m.open().Start()))
		case slidingMachine:
			p.recall(m, &old, now)
		case bucketMachine:
			m.fill(old.spent(now, 0))
		}
	}
}

// recall enters in a sliding sum what may have been spent in the window before now:
// in each part what is more than in the parts after it, at the end of the part.
func (p *Params) recall(m *Meter, old *State, now Instant) {
	part := Micros(ceilDiv(int64(m.Window), recalled))
	for i := Micros(recalled); i > 0; i-- {
		m.note(p.spentBy(m.Rate, now.Add(-(i-1)*part)), old.spent(now, i*part)-old.spent(now, (i-1)*part))
	}
	m.note(p.spentBy(m.Rate, now), old.spent(now, 0))
}

// spent returns the most that may have been spent in the span up to now, by the meter
// with the most. All that was granted has expired.
func (s *State) spent(now Instant, span Micros) int64 {
	var most int64
	for i := range s.Slice() {
		most = max(most, s.Meters[i].spent(s.Algorithm, now, span))
	}
	return most
}

func (m *Meter) spent(a Algorithm, now Instant, span Micros) int64 {
	if a.machine() == slidingMachine {
		used := sum(m.alive(now))
		if span <= m.Window {
			return used
		}
		return max(used, min(MaxExact/m.Limit, ceilDiv(int64(span), int64(m.Window)))*m.Limit)
	}
	// Units granted in the time have drained in it, or are still in the bucket.
	cost, drain := m.pace()
	level := m.drainTo(now, drain, 0)
	if int64(span) > (MaxExact-level)/drain {
		return MaxExact / cost
	}
	return ceilDiv(level+int64(span)*drain, cost)
}
