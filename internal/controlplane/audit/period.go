package audit

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// maxPeriods is how many periods a limit remembers.
const maxPeriods = 8

// A period is the time in which one store serves the limit, from one move to the next. Its
// instants are of that store's clock, so they are never compared with those of another.
type period struct {
	since   limiter.Instant            // as in Config
	reached limiter.Instant            // the store's time is at least this: a window began then
	adopted limiter.Instant            // reached, when the generation began
	dropped limiter.Instant            // rows of tuples that ended by then are not remembered
	used    map[limiter.Rate]time.Time // by what windowsOf returns: when a window was last reported as open
}

// current returns the period of the store that serves now.
func (l *Limit) current() *period { return l.period(l.promised.Since) }

// period returns the one that began at an instant, nil when it is not known.
func (l *Limit) period(since limiter.Instant) *period {
	if i := slices.IndexFunc(l.periods, func(p *period) bool { return p.since == since }); i >= 0 {
		return l.periods[i]
	}
	return nil
}

// begin adds the period that begins at an instant.
func (l *Limit) begin(since limiter.Instant) *period {
	p := &period{since: since, used: map[limiter.Rate]time.Time{}}
	l.periods = append(l.periods, p)
	return p
}

// periodOf returns the period of a row. Holders may name one that this audit did not see:
// before it began, or a moment before it is configured. It is nil when there are too many:
// the row may be of one that was forgotten.
func (l *Limit) periodOf(row *Row) *period {
	if p := l.period(row.Since); p != nil || len(l.periods) == maxPeriods {
		return p
	}
	return l.begin(row.Since)
}

// move begins the period of another store. The figures of the one before are shown until
// a window of the new one was measured.
func (l *Limit) move(since limiter.Instant) {
	if l.period(since) == nil {
		if len(l.periods) == maxPeriods {
			l.end(l.periods[0])
		}
		l.begin(since)
	}
	l.promised.Since = since
	for _, f := range l.figures {
		f.overEnd = time.Time{}
	}
}

// end forgets a period with its rows and windows.
func (l *Limit) end(p *period) {
	for t := range l.rows {
		if t.since == p.since {
			delete(l.rows, t)
		}
	}
	for id := range l.windows {
		if id.since == p.since {
			delete(l.windows, id)
		}
	}
	l.periods = slices.DeleteFunc(l.periods, func(other *period) bool { return other == p })
	l.lack()
}

// drop notes that the rows of t are not remembered.
func (p *period) drop(t tuple) { p.dropped = max(p.dropped, t.end()) }

// times returns what the clock of each period's store has reached, as far as is known.
func (l *Limit) times() map[limiter.Instant]limiter.Instant {
	out := make(map[limiter.Instant]limiter.Instant, len(l.periods))
	for _, p := range l.periods {
		out[p.since] = p.reached
	}
	for _, m := range l.members {
		out[m.endedOf] = max(out[m.endedOf], m.ended)
	}
	return out
}
