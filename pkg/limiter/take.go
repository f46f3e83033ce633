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
func (p *Params) take(s *State, now Instant, c *Command, res *Result) {
	s.count(c)
	r := p.read(s, now, c.Min, c)
	switch {
	case p.tooLarge(c):
		res.Reason = TooLarge
	case r.left < c.Min && r.forgotten:
		res.Reason, res.RetryAfter = Amnesia, r.wait
	case r.left < c.Min:
		res.Reason, res.RetryAfter = Exhausted, r.wait
	default:
		res.Reason, res.Granted = Granted, max(c.Min, min(c.Want, s.fairPart(r.left)))
		res.Delay = p.charge(s, now, res.Granted, &c.Memory)
	}
	if p.fair(s) && res.Reason != TooLarge {
		s.grant(p.Fairness.account(s, c.Tenant), res.Granted)
	}
	p.describe(s, now, c, res)
}

// count notes the first lease of a holder in the shortest window.
func (s *State) count(c *Command) {
	if c.First && s.Algorithm.WindowCoupled() {
		s.Asked++
	}
}

// fairPart returns how much one holder is granted of the rest: an equal part with
// those that leased in the window before and did not yet in this one. So a large
// fleet does not leave a budget with the few that ask first.
func (s *State) fairPart(left int64) int64 {
	return ceilDiv(left, max(0, s.Before-s.Asked)+1)
}

// tooLarge reports whether Min is an amount that is never granted.
func (p *Params) tooLarge(c *Command) bool {
	large := 0
	for _, r := range p.Rates {
		most := r.Limit
		if p.Algorithm.machine() == bucketMachine {
			most = p.capacity(r)
		}
		if c.Min > most {
			large++
		}
	}
	if p.Fairness.Default > 0 && p.Fairness.neverFits(p.Rates[0].Limit, c.Tenant, c.Min) {
		return true
	}
	return large == len(p.Rates) || large > 0 && !p.Any
}

// read combines what the meters say: the least of all, the most of any.
func (p *Params) read(s *State, now Instant, amount int64, c *Command) reading {
	if p.waits(s) {
		wait := s.Expires.Sub(now) + 1
		return reading{limit: p.Rates[0].Limit, wait: wait, resets: wait}
	}
	var all reading
	for i := range s.Slice() {
		r := p.readMeter(s, &s.Meters[i], now, amount, c)
		if amount > r.limit && p.either(s) {
			r.wait = never // it is for another meter
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

// never is longer than any wait.
const never = Micros(MaxExact)

// either reports whether one meter that admits is enough. All windows that an edit
// left in force have to.
func (p *Params) either(s *State) bool {
	if !p.Any || p.Algorithm.machine() != s.Algorithm.machine() || s.N != len(p.Rates) {
		return false
	}
	for i, r := range p.Rates {
		if !s.Meters[i].sameWindows(r) {
			return false
		}
	}
	return true
}

// and combines the readings of meters that all have to admit.
func (r reading) and(o reading) reading {
	binding := r
	if o.left < r.left || o.left == r.left && o.resets > r.resets {
		binding = o
	}
	binding.wait, binding.forgotten = max(r.wait, o.wait), r.forgotten || o.forgotten
	return binding
}

// or combines the readings of meters when one has to admit.
func (r reading) or(o reading) reading {
	binding := r
	if o.left > r.left || o.left == r.left && o.resets < r.resets {
		binding = o
	}
	binding.wait, binding.forgotten = min(r.wait, o.wait), r.forgotten && o.forgotten
	return binding
}

func (p *Params) readMeter(s *State, m *Meter, now Instant, amount int64, c *Command) reading {
	switch s.Algorithm.machine() {
	case windowMachine:
		return p.readWindow(s, m, now, amount, c)
	case slidingMachine:
		return p.readSliding(m, now, amount, &c.Memory)
	default:
		return p.readBucket(m, now, amount, &c.Memory)
	}
}

func (p *Params) readWindow(s *State, m *Meter, now Instant, amount int64, c *Command) reading {
	w := m.open()
	r := reading{limit: m.Limit, left: max(0, m.Limit-m.Used), resets: w.End().Sub(now)}
	if p.fair(s) {
		own := p.share(s, c.Tenant, amount)
		r.left, r.limit = own.left, own.used+own.left
	}
	if present := max(0, c.Memory.present(m.Limit, w.Start())-m.Used); present < r.left {
		r.forgotten, r.left = true, present
	}
	if !c.Memory.covers(w.Start()) {
		r.forgotten, r.left = true, 0
	}
	if r.left < amount {
		r.wait = r.resets
	}
	return r
}

// charge counts a grant in every meter, also in those that had no room when one
// that admits was enough: what a rate says is always about all that was granted. It
// returns how long the grant has to wait for its turn.
func (p *Params) charge(s *State, now Instant, amount int64, memory *Memory) Micros {
	var delay Micros
	for i := range s.Slice() {
		m := &s.Meters[i]
		switch s.Algorithm.machine() {
		case windowMachine:
			m.Used += min(amount, MaxExact-m.Used)
		case slidingMachine:
			m.note(p.spentBy(m.Rate, now.Add(p.Lifetime)), amount)
		case bucketMachine:
			m.fillBy(amount, p.unit(m.Rate, now, memory))
			if s.Algorithm == LeakyBucket {
				delay = max(delay, m.delay())
			}
		}
	}
	if !s.Algorithm.WindowCoupled() {
		s.Expires = max(s.Expires, now.Add(p.Lifetime+delay))
	}
	return delay
}

// Charge returns s after units were granted at the instant now, whether or not there was
// room for them. It never leaves more than if they had been granted before.
func (p Params) Charge(s State, now Instant, units int64) State {
	next := s
	p.adopt(&next, now, &Memory{})
	p.charge(&next, now, units, &Memory{})
	return next
}

// describe writes to the result what is left in the state and how long a grant
// lives.
func (p *Params) describe(s *State, now Instant, c *Command, res *Result) {
	r := p.read(s, now, 1, c)
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
