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
func (p Params) capacity(r Rate) int64 {
	cost, drain := r.pace()
	return (p.brim(r) - int64(p.Lifetime)*drain) / cost
}

// brim returns the level of a full bucket.
func (p Params) brim(r Rate) int64 {
	cost, drain := r.pace()
	if p.Algorithm == LeakyBucket {
		return int64(p.MaxDelay)*drain + cost
	}
	return r.burst() * cost
}

// drainTo returns the level at now, at least floor. A clock that stepped back
// drains nothing.
func (m Meter) drainTo(now Instant, drain, floor int64) int64 {
	elapsed := max(0, int64(now)-m.Index)
	if elapsed > m.Used/drain {
		return floor
	}
	return max(floor, m.Used-elapsed*drain)
}

// settle brings the bucket to now. What happened before the memory began filled
// the bucket, for all that is known.
func (p Params) settle(m *Meter, now Instant, memory Memory) {
	_, drain := m.pace()
	level := m.drainTo(now, drain, int64(p.Lifetime)*drain)
	if began := memory.since(m.Window); began > 0 {
		full := Meter{Rate: m.Rate, Index: int64(began), Used: p.brim(m.Rate)}
		level = max(level, full.drainTo(now, drain, 0))
	}
	m.Used, m.Index = level, max(m.Index, int64(now))
}

// drained returns how long it takes until the bucket is empty.
func (m Meter) drained(now Instant) Micros {
	_, drain := m.pace()
	return Micros(ceilDiv(m.drainTo(now, drain, 0), drain))
}

// bucketWait returns how long it takes from the level's instant until so many
// units fit.
func (p Params) bucketWait(m Meter, amount int64) Micros {
	cost, drain := m.pace()
	over := m.Used - (p.brim(m.Rate) - amount*cost)
	if over <= 0 {
		return 0
	}
	return Micros(ceilDiv(over, drain))
}

// delay returns how long the last of so many units, which the bucket holds, has to
// wait for its turn.
func (m Meter) delay() Micros {
	cost, drain := m.pace()
	return Micros(ceilDiv(max(0, m.Used-cost), drain))
}
