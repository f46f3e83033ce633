package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// silentRounds is how many rounds of reports without a word about a window that
// is over account for it. The first may have been under way when the window
// ended; the second is the first that certainly has all.
const silentRounds = 2

// patience is how many intervals a holder may take to account for a window
// beyond what it may be mistaken about its end, and to answer a question.
const patience = 10

type windowID struct {
	windows limiter.Rate // without amounts: which windows the index counts
	index   int64
	since   limiter.Instant // the period
}

// windowsOf returns what the windows of a rate differ by from others.
func windowsOf(r limiter.Rate) limiter.Rate {
	return limiter.Rate{Window: r.Window, Offset: r.Offset, Monthly: r.Monthly}
}

func (id windowID) open() limiter.OpenWindow {
	return limiter.OpenWindow{Rate: id.windows, Index: id.index}
}

func (id windowID) end() limiter.Instant { return id.open().End() }

func (id windowID) length() limiter.Micros { return id.windows.Window }

func (id windowID) compare(other windowID) int {
	return cmp.Or(cmp.Compare(id.end(), other.end()), cmp.Compare(id.length(), other.length()))
}

// A window gathers what holders let through in one window of one rate.
//
//	open → over: a report proves that it ended, or its length has passed
//	over → settled: every member has accounted for it
//	settled → answered: with a key, the holders that were asked have replied
//	answered → measured
//
// A late row opens the question again.
type window struct {
	id      windowID
	heard   time.Time // when it was first heard of
	began   time.Time // it began after this instant; zero when it may have begun at any time
	used    time.Time // it was first used by then
	claimed int64     // largest limit that a row named

	over     bool
	closed   time.Time // when it was found to be over
	measured bool
	known    bool // and nothing is missing

	tallies map[Holder]*tally
	// due holds, once the window is over, the members that have to account for it,
	// with the number of their rounds at that time.
	due     map[Holder]int
	missing map[Holder]struct{} // holders that may have let through more than is known
	query   *query              // of a limit with a key
	// inquired are keys that are asked for besides; see Inquire.
	inquired map[string]struct{}
	// unplaced says that some of what was admitted in it may be in no row.
	unplaced bool
}

func newWindow(id windowID, now time.Time) *window {
	return &window{id: id, heard: now, tallies: map[Holder]*tally{}, missing: map[Holder]struct{}{}}
}

// replace puts row in the place of old, which the window holds when resent is
// true.
func (w *window) replace(h Holder, old counted, resent bool, row Row) {
	t := w.tallies[h]
	if t == nil {
		t = &tally{}
		w.tallies[h] = t
	}
	before := *t
	if resent {
		t.add(old, -1)
	}
	t.add(row.counted(), +1)
	t.share = max(t.share, row.LocalShare)
	if row.Final { // an open row names no keys yet
		t.hidden = max(t.hidden, row.hidden(w.id.windows))
	}
	t.ended = t.ended || row.Final && tupleOf(&row).end() >= w.id.end()
	// A row that names other keys may leave out one whose count was taken from it.
	if t.admitted != before.admitted || t.refused != before.refused || t.open != before.open || !slices.Equal(old.Keys, row.Keys) {
		t.asked, t.replies = nil, nil
		w.reopen()
	}
}

// complete reports whether all that holders let through is in their rows.
func (w *window) complete() bool { return len(w.missing) == 0 && !w.unplaced }

func (w *window) reopen() { w.measured, w.known, w.query = false, false, nil }

func (w *window) openRows(h Holder) int {
	if t := w.tallies[h]; t != nil {
		return t.open
	}
	return 0
}

// close makes every member account for the window, which is over.
func (w *window) close(members map[Holder]*member, now time.Time) {
	w.over, w.closed = true, now
	w.due = make(map[Holder]int, len(members))
	for h, m := range members {
		w.due[h] = m.rounds
	}
}

// accounted reports whether h has said all there is to say about the window.
func (w *window) accounted(h Holder, m *member) bool {
	t := w.tallies[h]
	if t != nil && t.open > 0 || m.waiting {
		return false
	}
	if t != nil && t.ended {
		return true
	}
	at, due := w.due[h]
	return w.over && (!due || m.rounds >= at+silentRounds)
}

// settled reports whether no member is waited for. Once the window is overdue
// none is, and the counts of those that have not accounted for it are missing.
func (w *window) settled(members map[Holder]*member, overdue bool) bool {
	for h, m := range members {
		switch {
		case w.accounted(h, m):
			delete(w.missing, h)
		case overdue:
			w.missing[h] = struct{}{}
		default:
			return false
		}
	}
	return true
}

// leave takes h off the holders that are waited for; unless it accounted for the
// window, its counts are missing.
func (w *window) leave(h Holder, accounted bool) {
	if w.measured {
		return
	}
	delete(w.due, h)
	if accounted && (w.query == nil || !w.query.pending(h)) {
		return
	}
	if len(w.missing) >= maxLosses {
		h = Holder{} // one that never comes back stands for many
	}
	w.missing[h] = struct{}{}
}

// rejoin lets a holder that was lost account for the window after all.
func (w *window) rejoin(h Holder) {
	if _, ok := w.missing[h]; !ok {
		return
	}
	w.reopen()
	if w.over {
		w.due[h] = 0
	}
}
