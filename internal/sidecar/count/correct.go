package count

// Correct adds units, which may be negative, to what an event was admitted that was
// counted before: what it really cost became known later. An event that nobody
// remembers any more stays as it was counted.
func (l *Limit) Correct(e Event, units int64) {
	l.admitted.Add(units)
	if e.Windows == nil || e.Windows.N == 0 {
		l.unplaced.Add(units)
		return
	}
	t := tupleOf(e.Windows)
	l.mu.Lock()
	r := l.byTuple[t]
	if t.n > 1 {
		l.correctSums(t, e.Value, units)
	}
	l.mu.Unlock()
	if r != nil {
		r.correct(&e, units)
	}
}

func (r *row) correct(e *Event, units int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.total.admitted += units
	if e.Local {
		r.local += units
	}
	switch key := r.keys[e.Value]; {
	case key != nil:
		key.admitted += units
	case r.overflow:
		r.uncounted += units
	}
}

// correctSums corrects the sums of the tuple's windows; mu is held.
func (l *Limit) correctSums(t tuple, value string, units int64) {
	for _, w := range t.open[:t.n] {
		s := l.sums[w]
		if s == nil {
			continue
		}
		s.admitted += units
		if key := s.keys[value]; key != nil {
			key.admitted += units
		}
	}
}
