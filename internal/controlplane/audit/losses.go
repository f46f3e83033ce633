package audit

import (
	"math"
	"time"
)

// lossPatience is how long a window that admitted more than its bound is not measured while
// it is not known yet whether its store lost its memory meanwhile.
const lossPatience = time.Minute

// An Unbroken is a span of this process's time in which a store certainly lost nothing of
// its memory. Between two of them it lost it, at least once.
type Unbroken struct{ From, To time.Time }

// Remember says what is known of the memory of the limit's store: the spans in which it
// lost nothing, from the first to the last. They replace those that were known before.
func (l *Limit) Remember(spans []Unbroken) { l.unbroken = spans }

// resumes reports whether grants of w that the store forgot may have been granted again.
func (l *Limit) resumes(w *window) bool {
	return l.promised.Resume || l.mixes(w) && l.before.resume
}

// lossesIn returns how often the store certainly lost its memory after w was first used and
// before it was over, and whether none other can have touched w.
func (l *Limit) lossesIn(w *window) (n int64, all bool) {
	if w.id.since != l.promised.Since {
		return 0, false // the spans are those of another store
	}
	over := w.closed.Add(-slackReports * l.interval) // or later
	for i, s := range l.unbroken {
		if !w.began.IsZero() && !w.closed.IsZero() && !s.From.After(w.began) && !s.To.Before(w.closed) {
			return 0, true
		}
		if i > 0 && !l.unbroken[i-1].To.Before(w.used) && !s.From.After(over) {
			n++
		}
	}
	return n, false
}

// awaits reports whether w is not to be measured yet: it is known soon whether its store
// lost its memory meanwhile, and only that would explain what w admitted.
func (l *Limit) awaits(w *window, now time.Time) bool {
	if !l.resumes(w) || now.Sub(w.closed) > lossPatience || w.id.since != l.promised.Since {
		return false
	}
	if n := len(l.unbroken); n > 0 && !l.unbroken[n-1].To.Before(w.closed) {
		return false
	}
	return l.outcome(w).unexplained
}

// times returns n·most, at most the largest there is.
func times(n, most int64) int64 {
	if n > 0 && most > math.MaxInt64/n {
		return math.MaxInt64
	}
	return n * most
}
