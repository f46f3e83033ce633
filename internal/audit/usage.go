package audit

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Usage is what all holders counted of one limit in one window that is over.
type Usage struct {
	Admitted, Refused int64
	// Complete says that every holder's count is in it. Otherwise it is at least that.
	Complete bool
}

// Usage returns what holders counted in a window of a limit without a key that ended
// between the instants before and over, whether or not anybody was heard of in it. What
// was counted in a window that may have begun up to since, when the limit was still
// kept elsewhere, is left out.
func (l *Limit) Usage(open limiter.OpenWindow, before, over, since time.Time) Usage {
	out, heard := Usage{Complete: true}, false
	for _, p := range l.periods { // whichever store the policy named, the window is the budget's
		w := l.windows[windowID{windows: windowsOf(open.Rate), index: open.Index, since: p.since}]
		switch {
		case w == nil:
			continue
		case !w.began.After(since):
			return Usage{}
		}
		heard = true
		out.Complete = out.Complete && w.measured && w.complete() && w.began.After(l.known)
		for _, t := range w.tallies {
			out.Admitted += t.admitted
			out.Refused += t.refused
		}
	}
	if !heard {
		out.Complete = l.silent(before.Add(-duration(open.Window)), over, since)
	}
	return out
}

// silent reports whether surely nothing was counted in a window that nobody told of,
// which began no earlier than began and was over at the instant over.
func (l *Limit) silent(began, over, since time.Time) bool {
	if !began.After(l.known) || !began.After(since) || !began.After(l.unplaced) {
		return false
	}
	for _, lost := range l.losses {
		if !began.After(lost) {
			return false
		}
	}
	for _, m := range l.members {
		if !m.before.After(over) { // both of its last rounds tell of all before
			return false
		}
	}
	return true
}
