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

	// Pulse is the number of the shortest window, Asked how many holders took
	// their first lease in it, and Before how many did in the one before. They
	// guide the size of grants, not what may be granted.
	Pulse, Asked, Before int64

	N      int // meters in use
	Meters [MaxRates]Meter
}

// A Meter counts for one rate.
type Meter struct {
	Rate
	// Index is the number of the window; of a bucket the instant of its level.
	Index int64
	// Used is what was granted in the window, returns taken off; of a bucket its
	// level, of which Rate.pace is the measure.
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
	a, b := s, o
	for i := range a.Meters {
		a.Meters[i].Log, b.Meters[i].Log = nil, nil
		if !slices.Equal(s.Meters[i].Log, o.Meters[i].Log) {
			return false
		}
	}
	return a.Generation == b.Generation && a.Algorithm == b.Algorithm && a.Expires == b.Expires &&
		a.Pulse == b.Pulse && a.Asked == b.Asked && a.Before == b.Before &&
		slices.EqualFunc(a.Slice(), b.Slice(), func(x, y Meter) bool {
			return x.Rate == y.Rate && x.Index == y.Index && x.Used == y.Used
		})
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

func (m Meter) open() OpenWindow { return OpenWindow{Rate: m.Rate, Index: m.Index, Granted: m.Used} }

// served returns the newest instant known to have been served: no clock that is
// right shows less.
func (s State) served(m Memory) Instant {
	newest := m.Latest
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
	keep := s.Expires.Sub(now)
	for _, m := range s.Slice() {
		var until Micros
		switch s.Algorithm.machine() {
		case windowMachine:
			until = m.open().End().Sub(now)
		case slidingMachine:
			until = m.logEnds(now)
		case bucketMachine:
			until = m.drained(now)
		}
		keep = max(keep, until+m.Window)
	}
	return keep
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
