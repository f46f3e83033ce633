package count

import (
	"strings"
	"time"
)

// A sum is what keys were admitted and refused in one window over all tuples it
// is part of. Limits with one rate need none: there a window and a tuple are the
// same.
type sum struct {
	until    time.Time // when it is no longer needed
	keys     map[string]*tally
	overflow bool // keys beyond the bound were not counted
}

func (l *Limit) addToSums(t tuple, e Event, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range t.open[:t.n] {
		s, ok := l.sums[w]
		if !ok {
			length := time.Duration(w.length) * time.Microsecond
			s = &sum{until: now.Add(length + Keep), keys: make(map[string]*tally)}
			l.sums[w] = s
		}
		s.add(e, int(l.maxKeys.Load()))
	}
}

func (s *sum) add(e Event, maxKeys int) {
	key, ok := s.keys[e.Value]
	switch {
	case ok:
	case len(s.keys) >= maxKeys:
		s.overflow = true
		return
	default:
		key = new(tally)
		s.keys[strings.Clone(e.Value)] = key
	}
	key.add(e)
}

// admittedIn returns what the key was admitted in the window.
func (l *Limit) admittedIn(w window, value string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.sums[w]; ok && s.keys[value] != nil {
		return s.keys[value].admitted
	}
	return 0
}
