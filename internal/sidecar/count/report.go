package count

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds of a LimitReport. The rest waits for the next one.
const (
	maxRowsAtOnce  = 256
	maxKeysAtOnce  = 16_384 // about a megabyte
	maxHotKeys     = 1000   // of one row: keys that may have exceeded the limit
	maxRefusedKeys = 16     // of one row: keys most refused
)

// Report returns the totals of every limit, and the rows that are new, grew or
// became final since the last report of the session. Another session is sent all
// rows again.
func (b *Book) Report(now time.Time, session uint64) []*fleetpb.LimitReport {
	b.sweep(now)
	b.mu.Lock()
	limits := slices.SortedFunc(maps.Values(b.limits), func(l, m *Limit) int {
		return cmp.Or(cmp.Compare(l.name.Namespace, m.name.Namespace),
			cmp.Compare(l.name.Policy, m.name.Policy), cmp.Compare(l.name.Limit, m.name.Limit))
	})
	b.mu.Unlock()
	reports := make([]*fleetpb.LimitReport, len(limits))
	for i, l := range limits {
		reports[i] = l.report(now, session)
	}
	return reports
}

func (l *Limit) report(now time.Time, session uint64) *fleetpb.LimitReport {
	report := l.totals()
	report.Hottest = l.hottestKeys(now)
	keys := 0
	rows, more := l.unsent(now, session)
	report.Waiting = more
	for _, r := range rows {
		if keys > maxKeysAtOnce-maxHotKeys-maxRefusedKeys {
			report.Waiting = true
			break
		}
		w := l.reportRow(r, now, session)
		keys += len(w.GetKeys())
		report.Windows = append(report.Windows, w)
	}
	report.PlacedTotal = new(l.placed(session))
	return report
}

// placed returns the units, admitted and refused, of all rows: of those that are
// forgotten, and of the others as the session was sent them.
func (l *Limit) placed(session uint64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.gone
	for _, r := range l.rows {
		sum += r.sentTo(session)
	}
	return sum
}

// unsent returns the newest rows that the session has to be sent, in order, and
// whether more have to wait.
func (l *Limit) unsent(now time.Time, session uint64) (newest []*row, more bool) {
	l.mu.Lock()
	rows := slices.Clone(l.rows)
	l.mu.Unlock()
	rows = slices.DeleteFunc(rows, func(r *row) bool { return l.knows(r, now, session) })
	return rows[max(0, len(rows)-maxRowsAtOnce):], len(rows) > maxRowsAtOnce
}

func (l *Limit) totals() *fleetpb.LimitReport {
	return &fleetpb.LimitReport{
		Namespace: l.name.Namespace, Policy: l.name.Policy, Limit: l.name.Limit,
		Generation:    l.settings.Load().Generation,
		AdmittedTotal: l.admitted.Load(),
		RefusedTotal:  l.refused.Load(),
		UnplacedTotal: l.unplaced.Load(),
	}
}

// knows reports whether the session knows all there is to know at now.
func (l *Limit) knows(r *row, now time.Time, session uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent == sent{session: session, changes: r.changes, final: l.final(r, now)}
}

func (l *Limit) reportRow(r *row, now time.Time, session uint64) *fleetpb.WindowReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = sent{session: session, changes: r.changes, final: l.final(r, now)}
	r.reported = r.total.offered()
	w := &fleetpb.WindowReport{
		Windows:  r.windows(),
		Final:    r.sent.final,
		Admitted: r.total.admitted, Refused: r.total.refused,
		Local: r.local, LocalShare: r.localShare,
		AgeMicros:   max(1, now.Sub(r.opened).Microseconds()),
		SinceMicros: int64(r.tuple.since()),
	}
	// Keys of an open row would change until the next report anyway.
	if w.Final && l.settings.Load().Keyed {
		w.Keys, w.Unlisted = l.keysThatMatter(r)
	}
	return w
}

// sentTo returns the units, admitted and refused, that the session was sent.
func (r *row) sentTo(session uint64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent.session != session {
		return 0
	}
	return r.reported
}

func (r *row) windows() []*fleetpb.Window {
	windows := make([]*fleetpb.Window, r.tuple.n)
	for i, w := range r.tuple.open[:r.tuple.n] {
		rate := &fleetpb.Rate{
			Limit: r.limits[i], WindowMicros: int64(w.of.Window), OffsetMicros: int64(w.of.Offset), Monthly: w.of.Monthly,
		}
		windows[i] = &fleetpb.Window{Rate: rate, Index: w.index}
	}
	return windows
}

// A candidate is a key of a row that may be named in a report.
type candidate struct {
	value string
	tally
	used [limiter.MaxRates]int64 // admitted in each of the row's windows
}

// keysThatMatter returns the keys of r that have limits of their own, those that the fleet may
// have admitted too much of, those most refused, and for each window the most that another key
// was admitted in it; r.mu is held. If all holders together exceed a limit, one of them
// admitted more than its part. So a key that no holder names is mostly within it, and what the
// others were admitted at most shows for sure.
func (l *Limit) keysThatMatter(r *row) (keys []*fleetpb.KeyCount, unlisted []int64) {
	r.holders = max(r.holders, l.holders.Load())
	unlisted = make([]int64, r.tuple.n)
	for i, w := range r.tuple.open[:r.tuple.n] {
		unlisted[i] = l.uncountedIn(w, r)
	}
	leave := func(c candidate) {
		for i := range unlisted {
			unlisted[i] = max(unlisted[i], c.used[i])
		}
	}
	var own, hot, refused []candidate
	settings := l.settings.Load()
	overrides, clusters := settings.Overrides, max(1, settings.Clusters)
	for value, t := range r.keys.all() {
		c := candidate{value: value, tally: *t, used: l.used(r, value, t)}
		_, overridden := overrides[value]
		switch {
		case overridden:
			own = append(own, c)
		case r.hot(c, clusters):
			hot = append(hot, c)
		case c.refused > 0:
			refused = append(refused, c)
		default:
			leave(c)
		}
	}
	slices.SortFunc(own, byAdmitted)
	slices.SortFunc(hot, byAdmitted)
	slices.SortFunc(refused, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(a.value, b.value))
	})
	name := func(candidates []candidate, most int) {
		for i, c := range candidates {
			if i < most {
				keys = append(keys, &fleetpb.KeyCount{Hash: l.hash(c.value), Admitted: c.admitted, Refused: c.refused})
			} else {
				leave(c)
			}
		}
	}
	name(own, len(own))
	name(hot, maxHotKeys)
	name(refused, maxRefusedKeys)
	return keys, unlisted
}

func byAdmitted(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.admitted, a.admitted), cmp.Compare(a.value, b.value))
}

// used returns what the key was admitted in each of the row's windows.
func (l *Limit) used(r *row, value string, t *tally) (used [limiter.MaxRates]int64) {
	used[0] = t.admitted
	if r.tuple.n > 1 {
		for i, w := range r.tuple.open[:r.tuple.n] {
			used[i] = l.admittedIn(w, value, t.admitted)
		}
	}
	return used
}

// hot reports whether the key used more than this holder's part of a limit, which
// clusters share, in one of the row's windows.
func (r *row) hot(c candidate, clusters int64) bool {
	for i := range r.tuple.n {
		if c.used[i] > r.limits[i]/(clusters*max(1, r.holders)) {
			return true
		}
	}
	return false
}
