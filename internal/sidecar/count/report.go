package count

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// Bounds of a LimitReport. What does not fit waits for the next one.
const (
	maxRowsAtOnce  = 256
	maxKeysAtOnce  = 16_384 // about a megabyte
	maxHotKeys     = 1000   // of one row: keys that may have exceeded the limit
	maxRefusedKeys = 16     // of one row: keys most refused
)

// Report returns the totals of every limit, and the rows that are new, grew or
// became final since the session was last told. Another session is told of all
// rows anew.
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
	keys := 0
	for _, r := range l.untold(now, session) {
		if keys > maxKeysAtOnce-maxHotKeys-maxRefusedKeys {
			break
		}
		w := l.reportRow(r, now, session)
		keys += len(w.GetKeys())
		report.Windows = append(report.Windows, w)
	}
	return report
}

// untold returns the newest rows that the session has to be told of, in order.
func (l *Limit) untold(now time.Time, session uint64) []*row {
	l.mu.Lock()
	rows := slices.Clone(l.rows)
	l.mu.Unlock()
	rows = slices.DeleteFunc(rows, func(r *row) bool { return l.told(r, now, session) })
	return rows[max(0, len(rows)-maxRowsAtOnce):]
}

func (l *Limit) totals() *fleetpb.LimitReport {
	return &fleetpb.LimitReport{
		Namespace: l.name.Namespace, Policy: l.name.Policy, Limit: l.name.Limit,
		Generation:    l.generation.Load(),
		AdmittedTotal: l.admitted.Load(),
		RefusedTotal:  l.refused.Load(),
	}
}

// told reports whether the session knows all there is to know at now.
func (l *Limit) told(r *row, now time.Time, session uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent == sent{session: session, changes: r.changes, final: l.final(r, now)}
}

func (l *Limit) reportRow(r *row, now time.Time, session uint64) *fleetpb.WindowReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = sent{session: session, changes: r.changes, final: l.final(r, now)}
	w := &fleetpb.WindowReport{
		Windows:  r.windows(),
		Final:    r.sent.final,
		Admitted: r.total.admitted, Refused: r.total.refused,
		Local: r.local, LocalShare: r.localShare,
	}
	// Keys of an open row would change until the next report anyway.
	if w.Final {
		w.Keys, w.KeysOmitted = l.keysThatMatter(r)
	}
	return w
}

func (r *row) windows() []*fleetpb.Window {
	windows := make([]*fleetpb.Window, r.tuple.n)
	for i, w := range r.tuple.open[:r.tuple.n] {
		rate := &fleetpb.Rate{Limit: r.limits[i], WindowMicros: int64(w.length)}
		windows[i] = &fleetpb.Window{Rate: rate, Index: w.index}
	}
	return windows
}

// keysThatMatter returns the keys of r that the fleet may have admitted too much
// of, and those most refused. If all holders together exceed a limit, one of
// them admitted more than its part, so a key that no holder names is within it.
func (l *Limit) keysThatMatter(r *row) (keys []*fleetpb.KeyCount, omitted bool) {
	omitted = r.overflow
	var cool []*fleetpb.KeyCount // most refused last
	for value, t := range r.keys {
		k := &fleetpb.KeyCount{Admitted: t.admitted, Refused: t.refused}
		switch {
		case l.hot(r, value, t):
			k.Hash = l.hash(value)
			keys = append(keys, k)
		case t.refused > 0:
			k.Hash = l.hash(value)
			cool = append(cool, k)
		}
	}
	slices.SortFunc(keys, func(a, b *fleetpb.KeyCount) int {
		return cmp.Or(cmp.Compare(b.Admitted, a.Admitted), cmp.Compare(a.Hash, b.Hash))
	})
	slices.SortFunc(cool, func(a, b *fleetpb.KeyCount) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Hash, b.Hash))
	})
	omitted = omitted || len(keys) > maxHotKeys || len(cool) > maxRefusedKeys
	keys = keys[:min(len(keys), maxHotKeys)]
	return append(keys, cool[:min(len(cool), maxRefusedKeys)]...), omitted
}

// hot reports whether the key used more than this holder's part of a limit in
// one of the row's windows.
func (l *Limit) hot(r *row, value string, t *tally) bool {
	holders := l.holders.Load()
	for i, w := range r.tuple.open[:r.tuple.n] {
		admitted := t.admitted
		if r.tuple.n > 1 {
			admitted = max(admitted, l.admittedIn(w, value))
		}
		if admitted > r.limits[i]/holders {
			return true
		}
	}
	return false
}
