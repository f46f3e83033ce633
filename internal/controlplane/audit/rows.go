package audit

import "time"

// Report enters what a holder counted. Reports of others than members are
// ignored.
func (l *Limit) Report(h Holder, r Report, now time.Time) {
	m := l.members[h]
	if m == nil {
		return
	}
	if m.reported {
		l.meter.Add(r.Totals.counts().Since(m.totals.counts()), now)
		if r.Generation > m.generation {
			l.changed = now
		}
	}
	if m.waiting = r.Waiting; !r.Waiting {
		m.hear(now, l.interval)
	}
	m.reported, m.generation, m.totals, m.activeKeys, m.hottest = true, r.Generation, r.Totals, r.ActiveKeys, r.Hottest
	for _, row := range r.Rows {
		l.count(h, m, row, now, m.rounds <= 1 || !m.caught)
		if row.Final {
			m.end(tupleOf(&row))
		}
	}
	m.caught = m.caught || !r.Waiting
	l.compare(h, m, &r, now)
	l.review()
	l.drop()
}

// count replaces what h reported for the row's windows before. Reports in the first round
// after a holder joined may be old.
func (l *Limit) count(h Holder, m *member, row Row, now time.Time, first bool) {
	t := tupleOf(&row)
	if t.N == 0 {
		return
	}
	p := l.periodOf(&row)
	if p == nil || t.end() <= p.dropped {
		l.prove(h, row, now)
		return
	}
	byHolder := l.rows[t]
	if byHolder == nil {
		byHolder = map[Holder]counted{}
		l.rows[t] = byHolder
	}
	old, resent := byHolder[h]
	if old.Final && !row.Final {
		return // overtaken on the way
	}
	byHolder[h] = row.counted()
	l.accountOf(h, m).accepted += row.Admitted + row.Refused - old.Admitted - old.Refused
	l.traffic = l.traffic || row.Admitted+row.Refused > 0
	for id, open := range row.windows() {
		w := l.window(id, row.Age, now, first)
		w.claimed = max(w.claimed, open.Limit)
		if used := now.Add(-row.Age); w.used.IsZero() || used.Before(w.used) {
			w.used = used
		}
		w.replace(h, old, resent, row)
		if l.figures[id.windows] != nil && !row.Final && !first {
			p.used[id.windows] = now
		}
	}
	p.reached = max(p.reached, t.start())
}

// window returns the window, new when it was never heard of; old says that it may
// have ended long ago, and age when it was used first.
func (l *Limit) window(id windowID, age time.Duration, now time.Time, old bool) *window {
	if w := l.windows[id]; w != nil {
		return w
	}
	w := newWindow(id, now)
	if age > 0 { // by which its clock may have been suspended
		age = max(age, duration(l.period(id.since).reached.Sub(id.end())))
	}
	switch {
	case !old && age > l.interval:
		w.began = earlier(l.began(id, now), l.began(id, now.Add(-age)))
	case !old:
		w.began = l.began(id, now)
	case age > 0:
		w.began = now.Add(-age - duration(id.length()) - slackReports*l.interval)
	}
	w.unplaced = !l.unplaced.IsZero() && !w.began.After(l.unplaced)
	for h, at := range l.losses {
		if !w.began.After(at) {
			w.missing[h] = struct{}{}
		}
	}
	l.windows[id] = w
	return w
}

// began returns an instant after which the window began that a holder used since
// its last report: it is at most its length old, and an earlier one was in use
// before it.
func (l *Limit) began(id windowID, now time.Time) time.Time {
	began := now.Add(-duration(id.length()))
	if l.newest(id) {
		began = later(began, l.period(id.since).used[id.windows])
	}
	return began.Add(-slackReports * l.interval)
}

// newest reports whether id is later than every window of its period and length.
func (l *Limit) newest(id windowID) bool {
	for other := range l.windows {
		if other.since == id.since && other.windows == id.windows && other.index >= id.index {
			return false
		}
	}
	return true
}

// drop forgets the oldest rows and windows beyond the bound.
func (l *Limit) drop() {
	retained := retainedTuples
	if l.keyed {
		retained = retainedKeyedTuples
	}
	retained = max(retained, int(measureReports*l.interval/l.shortest))
	for len(l.rows) > retained {
		oldest := l.oldest()
		delete(l.rows, oldest)
		l.period(oldest.since).drop(oldest)
	}
	for id, w := range l.windows {
		if !w.measured || id.end() > l.period(id.since).dropped {
			continue
		}
		if f := l.figures[id.windows]; f != nil && !w.known {
			f.lacking = true
		}
		delete(l.windows, id)
	}
	if len(l.windows) > maxWindows {
		l.forget() // no clock runs through that many windows: a holder invents them
		l.lack()
	}
}

// forget drops every row and window. Rows of those that are open may come again.
func (l *Limit) forget() {
	for t, byHolder := range l.rows {
		if p := l.period(t.since); t.end() <= p.reached {
			p.drop(t)
			continue
		}
		for h, row := range byHolder {
			if a := l.accounts[h]; a != nil {
				a.accepted -= row.Admitted + row.Refused
			}
		}
	}
	clear(l.rows)
	clear(l.windows)
}

// oldest returns the tuple that ended first, of stores that do not serve any longer before
// those of the one that does.
func (l *Limit) oldest() tuple {
	var oldest tuple
	for t := range l.rows {
		serves, before := t.since == l.promised.Since, oldest.since == l.promised.Since
		if oldest.N == 0 || before && !serves || before == serves && t.end() < oldest.end() {
			oldest = t
		}
	}
	return oldest
}
