package limiter

// A bucket holds what was granted, and drains at the rate. Its level is measured
// so that a unit and a microsecond are both whole numbers; see Rate.pace.
//
// Grants may be spent up to Lifetime after they were made. The bucket never
// drains below what flows out in that time, so it stands at least as high as one
// that is filled by each unit when it is spent, at whatever instant that is: what
// is spent in an interval of length x is at most Burst + Limit·x/Window. The
// price is the burst that can be granted at once, not the rate.

// capacity returns the most that is ever granted at once.
func (p *Params) capacity(r Rate) int64 {
	cost, drain := r.pace()
	return (p.brim(r) - int64(p.Lifetime)*drain) / cost
}

// brim returns the level of a full bucket.
func (p *Params) brim(r Rate) int64 {
	cost, drain := r.pace()
	if p.Algorithm == LeakyBucket {
		return int64(p.MaxDelay)*drain + cost
	}
	return r.burst() * cost
}

// drainTo returns the level at now, at least floor. Before the instant of the level,
// which is also where a clock may step back to, nothing drains.
func (m *Meter) drainTo(now Instant, drain, floor int64) int64 {
	elapsed := max(0, int64(now)-m.Index)
	if elapsed > m.Used/drain {
		return floor
	}
	return max(floor, m.Used-elapsed*drain)
}

// settle brings the bucket to now. Grants from before the memory began are taken to
// have filled the bucket. (Where another rate may admit alone, it may have filled it
// beyond the brim: that is not made good.)
func (p *Params) settle(m *Meter, now Instant, memory *Memory) {
	_, drain := m.pace()
	level, at := m.drainTo(now, drain, int64(p.Lifetime)*drain), max(m.Index, int64(now))
	if began := max(memory.since(m.Rate), memory.changed(m.Rate, now)); began > 0 {
		full := Meter{Index: int64(began), Used: p.brim(m.Rate)}
		if l := full.drainTo(now, drain, 0); l >= level {
			level, at = l, max(at, int64(began))
		}
	}
	m.Used, m.Index = level, at
}

// readBucket reads a meter that was settled.
func (p *Params) readBucket(m *Meter, now Instant, amount int64, memory *Memory) reading {
	cost, drain := m.pace()
	r := reading{limit: p.capacity(m.Rate), left: max(0, p.brim(m.Rate)-m.Used) / cost}
	unit := p.unit(m.Rate, now, memory)
	if unit != cost {
		r.forgotten = true
		if unit > 0 {
			r.left = max(0, p.brim(m.Rate)-m.Used) / unit
		} else {
			r.left = 0
		}
	}
	ahead := Instant(m.Index).Sub(now)
	if floor := int64(p.Lifetime) * drain; m.Used > floor {
		r.resets = ahead + Micros(ceilDiv(m.Used-floor, drain))
	}
	switch {
	case r.left >= amount || amount > r.limit:
	case r.forgotten: // others may be back when the next window begins
		r.wait = m.WindowAt(now).End().Sub(now)
	default:
		r.wait = ahead + Micros(ceilDiv(m.Used-p.brim(m.Rate)+amount*cost, drain))
	}
	return r
}

// fill adds units, as far as the level can be counted.
func (m *Meter) fill(amount int64) {
	cost, _ := m.pace()
	m.fillBy(amount, cost)
}

// fillBy adds units that count as much as unit.
func (m *Meter) fillBy(amount, unit int64) {
	if unit > 0 {
		m.Used += min(amount, (MaxExact-m.Used)/unit) * unit
	}
}

// delay returns how long the last of that many units, which the bucket holds, has to
// wait for its turn.
func (m *Meter) delay() Micros {
	cost, drain := m.pace()
	return Micros(ceilDiv(max(0, m.Used-cost), drain))
}
