package limiter

// A reading is what one meter says to a take.
type reading struct {
	limit     int64  // the most that can be left
	left      int64  // units it can still grant
	wait      Micros // until Min are left
	resets    Micros // until nothing that was granted counts any more
	forgotten bool   // the store does not know what was granted
}

// take grants what the meters have left.
func (p Params) take(s State, now Instant, c Command) (State, Result) {
	res := Result{Now: now, Algorithm: s.Algorithm}
	s.count(c)
	if s.Algorithm.machine() != p.Algorithm.machine() && !s.Algorithm.WindowCoupled() {
		res.Reason, res.RetryAfter, res.Windows = Exhausted, s.Expires.Sub(now), s.Windows(now)
		res.ResetAfter, res.Limit = res.RetryAfter, p.Rates[0].Limit
		return s, res
	}
	r := p.read(s, now, c.Min, c.Memory)
	switch {
	case p.tooLarge(c.Min):
		res.Reason = TooLarge
	case r.left < c.Min && r.forgotten:
		res.Reason, res.RetryAfter = Amnesia, r.wait
	case r.left < c.Min:
		res.Reason, res.RetryAfter = Exhausted, r.wait
	default:
		res.Reason, res.Granted = Granted, max(c.Min, min(c.Want, s.fairPart(r.left)))
		p.charge(&s, now, res.Granted, &res)
	}
	p.describe(s, now, c.Memory, &res)
	return s, res
}

// count notes the first lease of a holder in the shortest window.
func (s *State) count(c Command) {
	if c.First && s.Algorithm.WindowCoupled() {
		s.Asked++
	}
}

// fairPart returns what one holder is granted of what is left: an equal part with
// those who leased in the window before and did not yet in this one. So a large
// fleet does not leave a budget with the few who ask first.
func (s State) fairPart(left int64) int64 {
	return ceilDiv(left, max(0, s.Before-s.Asked)+1)
}

// tooLarge reports an amount that is never granted.
func (p Params) tooLarge(amount int64) bool {
	large := 0
	for _, r := range p.Rates {
		most := r.Limit
		if p.Algorithm.machine() == bucketMachine {
			most = p.capacity(r)
		}
		if amount > most {
			large++
		}
	}
	return large == len(p.Rates) || large > 0 && !p.Any
}

// read combines what the meters say: of all the least, of any the most.
func (p Params) read(s State, now Instant, amount int64, m Memory) reading {
	var all reading
	for i, meter := range s.Slice() {
		r := p.readMeter(s.Algorithm, meter, now, amount, m)
		if r.forgotten {
			r.left = 0
		}
		if amount > r.limit && p.either(s) {
			r.wait = MaxWindow // it is for another meter
		}
		switch {
		case i == 0:
			all = r
		case p.either(s):
			all = all.or(r)
		default:
			all = all.and(r)
		}
	}
	return all
}

// either reports whether one meter that admits is enough. Windows that an edit
// left in force all have to.
func (p Params) either(s State) bool { return p.Any && s.Algorithm.machine() == p.Algorithm.machine() }

// and combines the readings of meters that all have to admit.
func (r reading) and(o reading) reading {
	binding := r
	if o.left < r.left || o.left == r.left && o.resets > r.resets {
		binding = o
	}
	binding.wait, binding.forgotten = max(r.wait, o.wait), r.forgotten || o.forgotten
	return binding
}

// or combines the readings of meters of which one has to admit.
func (r reading) or(o reading) reading {
	binding := r
	if o.left > r.left || o.left == r.left && o.resets < r.resets {
		binding = o
	}
	binding.wait, binding.forgotten = min(r.wait, o.wait), r.forgotten && o.forgotten
	return binding
}

func (p Params) readMeter(a Algorithm, m Meter, now Instant, amount int64, memory Memory) reading {
	switch a.machine() {
	case windowMachine:
		w := m.open()
		r := reading{limit: m.Limit, left: max(0, m.Limit-m.Used), resets: w.End().Sub(now)}
		r.forgotten = !memory.covers(w.Start())
		if r.forgotten || r.left < amount {
			r.wait = r.resets
		}
		return r
	case slidingMachine:
		r := reading{limit: m.Limit, left: max(0, m.Limit-sum(m.Log)), resets: m.logEnds(now), wait: m.slidingWait(now, amount)}
		if began := memory.since(m.Window); began > 0 {
			if ends := p.spentBy(m.Rate, began).Add(m.Window).Sub(now); ends > 0 {
				r.forgotten, r.wait, r.resets = true, max(r.wait, ends), max(r.resets, ends)
			}
		}
		return r
	default:
		cost, drain := m.pace()
		floor := int64(p.Lifetime) * drain
		return reading{
			limit:  p.capacity(m.Rate),
			left:   max(0, p.brim(m.Rate)-m.Used) / cost,
			wait:   p.bucketWait(m, amount),
			resets: Micros(ceilDiv(m.Used-floor, drain)),
		}
	}
}

// charge counts a grant in every meter; of meters of which one has to admit, in
// each as far as it has room.
func (p Params) charge(s *State, now Instant, amount int64, res *Result) {
	for i := range s.Slice() {
		m := &s.Meters[i]
		part := amount
		if p.either(*s) {
			part = min(part, p.readMeter(s.Algorithm, *m, now, 1, Memory{}).left)
		}
		if part == 0 {
			continue
		}
		switch s.Algorithm.machine() {
		case windowMachine:
			m.Used += part
		case slidingMachine:
			m.note(p.spentBy(m.Rate, now), part)
		case bucketMachine:
			cost, _ := m.pace()
			m.Used += part * cost
			if s.Algorithm == LeakyBucket {
				res.Delay = max(res.Delay, m.delay())
			}
		}
	}
	if !s.Algorithm.WindowCoupled() {
		s.Expires = max(s.Expires, now.Add(p.Lifetime))
	}
}

// describe writes to the result what is left in the state and how long a grant
// lives.
func (p Params) describe(s State, now Instant, m Memory, res *Result) {
	r := p.read(s, now, 1, m)
	res.Windows, res.Limit, res.Remaining, res.ResetAfter = s.Windows(now), r.limit, r.left, r.resets
	if !s.Algorithm.WindowCoupled() {
		res.ExpiresIn = p.Lifetime
		return
	}
	res.ExpiresIn = MaxWindow
	for _, w := range res.Windows.Slice() {
		res.ExpiresIn = min(res.ExpiresIn, w.End().Sub(now))
	}
}
