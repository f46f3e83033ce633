package limiter

import "slices"

// State is what is remembered of one key. The zero value is the state of a key
// never seen: there is no separate first request. It is a value: Step never
// writes to what a state that it was given holds.
type State struct {
	Generation int64     // newest generation that asked; older ones are refused
	Algorithm  Algorithm // of the meters
	// Expires is the last instant at which a time-coupled grant may be spent.
	Expires Instant
	// Began is when an edit last replaced or changed meters that have no windows, 0
	// for never. Grants up to then are no longer distinguished.
	Began Instant

	// Pulse is the number of the shortest window, Asked how many holders took
	// their first lease in it, and Before how many did in the one before. They
	// guide the size of grants, not what may be granted.
	Pulse, Asked, Before int64

	// Tenants is what each tenant was granted of the open window, ordered by
	// tenant. It is not written to.
	Tenants []TenantUse

	N      int // meters in use
	Meters [MaxRates]Meter
}

// A Meter counts for one rate.
type Meter struct {
	Rate
	// Index is the number of the window; of a bucket the instant of its level, which
	// lies ahead when the level does not drain before, and of a sliding sum the
	// newest instant it was brought to.
	Index int64
	// Used is what was granted in the window, returns taken off; for a bucket its
	// level, in the measure of Rate.pace; for a sliding sum 0.
	Used int64
	// Log holds what a sliding sum has granted, oldest first. It is not written to.
	Log []Entry
}

// An Entry is what a sliding sum granted to be spent up to some instant.
type Entry struct {
	At    Instant // the latest instant of spending
	Count int64
}

// Slice returns the meters in use. It aliases s.
func (s *State) Slice() []Meter { return s.Meters[:s.N] }

// Equal reports whether both states are the same.
func (s State) Equal(o State) bool {
	return s.Generation == o.Generation && s.Algorithm == o.Algorithm && s.Expires == o.Expires && s.Began == o.Began &&
		s.Pulse == o.Pulse && s.Asked == o.Asked && s.Before == o.Before &&
		slices.Equal(s.Tenants, o.Tenants) && slices.EqualFunc(s.Slice(), o.Slice(), Meter.equal)
}

func (m Meter) equal(o Meter) bool {
	return m.Rate == o.Rate && m.Index == o.Index && m.Used == o.Used && slices.Equal(m.Log, o.Log)
}

// Windows returns the windows the key is charged in at now.
func (s State) Windows(now Instant) Windows {
	var w Windows
	for _, m := range s.Slice() {
		if s.Algorithm.WindowCoupled() {
			w.add(m.open())
		} else {
			w.add(m.WindowAt(now))
		}
	}
	return w
}

func (m *Meter) open() OpenWindow { return OpenWindow{Rate: m.Rate, Index: m.Index, Granted: m.Used} }

// served returns the newest instant known to have been served: no clock that is
// right shows less.
func (s *State) served(m *Memory) Instant {
	newest := max(m.Latest, s.Began)
	if s.Algorithm.WindowCoupled() {
		for _, w := range s.Slice() {
			newest = max(newest, w.open().Start())
		}
	}
	return newest
}

// KeepFor returns how long after now a store must keep s for Step to stay exact:
// until nothing that was granted counts any more, and a window longer, which is
// how long a clock may step back without being noticed.
func (s State) KeepFor(now Instant) Micros {
	keep := max(0, s.Expires.Sub(now))
	for _, m := range s.Slice() {
		keep = max(keep, m.counts(s.Algorithm).Add(m.Window).Sub(now))
	}
	return keep
}

// Reset returns s without what was granted. Units that holders have stay good.
func (s State) Reset(now Instant) State {
	s.Tenants = nil
	for i := range s.Slice() {
		m := &s.Meters[i]
		m.Used, m.Log = 0, nil
		if !s.Algorithm.WindowCoupled() {
			m.Index = int64(now)
		}
	}
	return s
}

// Counts reports whether anything that was granted still counts at the instant now.
func (s State) Counts(now Instant) bool {
	for _, m := range s.Slice() {
		if now < m.counts(s.Algorithm) {
			return true
		}
	}
	return false
}

// counts returns the instant from which on nothing counts that was granted.
func (m *Meter) counts(a Algorithm) Instant {
	switch a.machine() {
	case windowMachine:
		return m.open().End()
	case slidingMachine:
		return max(Instant(m.Index), m.logEnds())
	default:
		_, drain := m.pace()
		return Instant(m.Index).Add(Micros(ceilDiv(m.Used, drain)))
	}
}

func (s *State) add(m Meter) {
	s.Meters[s.N] = m
	s.N++
}

// find returns the meter of the same windows, nil when there is none.
func (s *State) find(r Rate) *Meter {
	for i := range s.Slice() {
		if s.Meters[i].sameWindows(r) {
			return &s.Meters[i]
		}
	}
	return nil
}
