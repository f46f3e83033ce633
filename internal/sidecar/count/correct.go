package count

// Correct adds units, which may be negative, to what an event was admitted that was
// counted before: what it really cost became known later. Units of an event that is no
// longer remembered are in no row.
func (l *Limit) Correct(e Event, units int64) {
	l.admitted.Add(units)
	if e.Windows == nil || e.Windows.N == 0 {
		l.unplaced.Add(units)
		return
	}
	t := tupleOf(e.Windows, e.Since)
	l.mu.Lock()
	r := l.byTuple[t]
	if r == nil {
		l.gone += units
	}
	l.mu.Unlock()
	if t.n > 1 {
		l.correctSums(t, e.Value, units)
	}
	if r != nil && !r.correct(&e, units) {
		l.mu.Lock()
		l.gone += units
		l.mu.Unlock()
	}
}

// correct corrects the row, and returns false when it is forgotten.
func (r *row) correct(e *Event, units int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.changes++
	r.total.admitted += units
	if e.Local {
		r.local += units
	}
	switch key := r.keys.get(e.Value); {
	case key != nil:
		key.admitted += units
	case r.overflow:
		r.uncounted += units
	}
	return true
}

// correctSums corrects the sums of the tuple's windows.
func (l *Limit) correctSums(t tuple, value string, units int64) {
	l.summing.Lock()
	defer l.summing.Unlock()
	for _, w := range t.open[:t.n] {
		s := l.sums[w]
		if s == nil {
			continue
		}
		s.admitted += units
		if key := s.keys.get(value); key != nil {
			key.admitted += units
		}
	}
}
