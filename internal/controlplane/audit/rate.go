package audit

import "time"

// figure is what was measured of one rate.
type figure struct {
	measured  bool
	full      bool // unused was measured
	missing   bool // the newest window that is over is unknown
	failOpen  bool // in the last window holders admitted without a share
	forgotten bool // what the last window admitted is unexplained
	overEnd   time.Time
	window    Overshoot // without Worst; zero for none
	shown     windowID  // of window
	unused    int32
	worst     int64
	worstEnd  time.Time
	limitless bool  // the window with worst was unbounded
	excess    int64 // the most beyond a bound
	lacking   bool  // not all is known of windows that are not held any more
}

// enter takes over what was measured of a window.
func (f *figure) enter(m measurement) {
	if m.overshoot > f.worst {
		f.worst, f.worstEnd, f.limitless = m.overshoot, m.end, m.limitless()
	}
	if !m.limitless() {
		f.excess = max(f.excess, m.excess)
	}
	if m.early || m.past {
		f.lacking = f.lacking || !m.known
		f.missing = f.missing || m.past && !m.known && f.shown.since == m.id.since
		return
	}
	if !m.end.Before(f.overEnd) {
		f.overEnd, f.missing = m.end, !m.known
	}
	switch {
	case m.id.since == f.shown.since && m.end.Before(f.window.WindowEnd):
		return
	case !m.known && m.id == f.shown:
		f.withdraw()
		return
	case !m.known:
		return
	}
	f.measured, f.failOpen, f.forgotten = true, m.unbounded, m.unexplained
	f.shown = m.id
	f.window = Overshoot{WindowEnd: m.end, Observed: m.overshoot, Bound: m.bound, Unbounded: m.limitless()}
	if m.full {
		f.full, f.unused = true, m.unused
	}
}

// withdraw takes back what is shown of the window that was measured last: not all of it
// is known.
func (f *figure) withdraw() {
	if !f.window.WindowEnd.IsZero() {
		f.missing, f.full, f.window, f.shown = true, false, Overshoot{}, windowID{}
	}
}

// review takes back what is shown of windows that are to be measured again.
func (l *Limit) review() {
	for _, f := range l.figures {
		if w := l.windows[f.shown]; w != nil && !w.measured {
			f.withdraw()
		}
	}
}

// lack notes that of some windows of the generation not all is known.
func (l *Limit) lack() {
	for _, f := range l.figures {
		f.lacking = true
	}
}

// Inherit says that the generation began before this audit did, so that windows of it were
// not seen.
func (l *Limit) Inherit() { l.lack() }

// partial reports whether windows of the rate may have admitted more than is known: some
// are unknown, or a holder vanished that may live on.
func (l *Limit) partial(f *figure) bool {
	if f.lacking {
		return true
	}
	for _, w := range l.windows {
		if w.measured && !w.known && l.figures[w.id.windows] == f {
			return true
		}
	}
	for _, a := range l.accounts {
		if !a.lost.IsZero() {
			return true
		}
	}
	return false
}

// owing reports whether a holder that came back has not accounted yet for what it did
// while it was away.
func (l *Limit) owing() bool {
	for h, a := range l.accounts {
		if !a.lost.IsZero() && l.members[h] != nil {
			return true
		}
	}
	return false
}
