package count

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A sum is what keys were admitted and refused in one window over all tuples it
// is part of. Limits with one rate need none: there a window and a tuple are the
// same.
type sum struct {
	end      time.Time // estimated, no earlier than the window's
	admitted int64     // over all keys
	keys     tallies
	taken    int64 // bytes of memory for them
	overflow bool  // keys beyond the bound were not counted
}

func (l *Limit) addToSums(t tuple, e *Event, now time.Time) {
	l.summing.Lock()
	defer l.summing.Unlock()
	for _, w := range t.open[:t.n] {
		s, ok := l.sums[w]
		if !ok {
			length := time.Duration(w.of.Window) * time.Microsecond
			s = &sum{end: now.Add(length)}
			l.sums[w] = s
			l.summed = append(l.summed, w)
		}
		s.add(e, l.settings.Load().MaxKeys, l.memory)
	}
}

func (s *sum) add(e *Event, maxKeys int, memory *usage) {
	s.admitted += e.admitted()
	key := s.key(e, maxKeys, memory)
	if key == nil {
		s.overflow = true
		return
	}
	key.add(e)
}

// key returns the tally of the event's key, as that of a row does.
func (s *sum) key(e *Event, maxKeys int, memory *usage) *tally {
	if key := s.keys.get(e.Value); key != nil {
		return key
	}
	if s.keys.n >= maxKeys && !e.overridden {
		return nil
	}
	n, ok := memory.take(e.Value)
	if !ok && !e.overridden {
		return nil
	}
	s.taken += n
	return s.keys.add(e.lasting())
}

// admittedIn returns what the key was admitted in the window, own being what it
// was in one tuple of it.
func (l *Limit) admittedIn(w window, value string, own int64) int64 {
	l.summing.Lock()
	defer l.summing.Unlock()
	if s, ok := l.sums[w]; ok {
		if key := s.keys.get(value); key != nil {
			return max(own, key.admitted)
		}
	}
	return own
}

// uncountedIn returns the most that a key may have been admitted in the window
// although it was not counted apart in r, one of the window's rows; r.mu is held.
func (l *Limit) uncountedIn(w window, r *row) int64 {
	if r.tuple.n == 1 {
		return r.uncounted
	}
	l.summing.Lock()
	defer l.summing.Unlock()
	switch s := l.sums[w]; {
	case s == nil:
		return limiter.MaxLimit // forgotten
	case r.overflow || s.overflow:
		return s.admitted
	}
	return 0
}
