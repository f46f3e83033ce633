package count

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// Bounds of what is reported.
const (
	maxHotKeys     = 10_000 // of one row: keys that may have exceeded the limit
	maxRefusedKeys = 16     // of one row: keys most refused
	maxRowsAtOnce  = 256    // of one LimitReport
	maxKeysAtOnce  = 16_384 // of one LimitReport, about a megabyte
)

// Report returns what changed since the session was last told: the totals of
// every limit, and the rows that are new, grew or became final. Another session
// is told everything anew. A limit with much to say has several reports.
func (b *Book) Report(now time.Time, session uint64) []*fleetpb.LimitReport {
	b.sweep(now)
	b.mu.Lock()
	limits := slices.SortedFunc(maps.Values(b.limits), func(l, m *Limit) int {
		return cmp.Or(cmp.Compare(l.name.Namespace, m.name.Namespace),
			cmp.Compare(l.name.Policy, m.name.Policy), cmp.Compare(l.name.Limit, m.name.Limit))
	})
	b.mu.Unlock()
	var reports []*fleetpb.LimitReport
	for _, l := range limits {
		reports = append(reports, l.report(now, session)...)
	}
	return reports
}

func (l *Limit) report(now time.Time, session uint64) []*fleetpb.LimitReport {
	l.mu.Lock()
	rows := slices.Clone(l.rows)
	l.mu.Unlock()
	first := l.totals()
	reports := []*fleetpb.LimitReport{first}
	last, keys := first, 0
	for _, r := range rows {
		w := l.reportRow(r, now, session)
		if w == nil {
			continue
		}
		if len(last.Windows) >= maxRowsAtOnce || keys+len(w.Keys) > maxKeysAtOnce {
			last, keys = l.totals(), 0
			reports = append(reports, last)
		}
		last.Windows = append(last.Windows, w)
		keys += len(w.Keys)
	}
	return reports
}

func (l *Limit) totals() *fleetpb.LimitReport {
	return &fleetpb.LimitReport{
		Namespace: l.name.Namespace, Policy: l.name.Policy, Limit: l.name.Limit,
		Generation:    l.generation.Load(),
		AdmittedTotal: l.admitted.Load(),
		RefusedTotal:  l.refused.Load(),
	}
}

// reportRow returns the row as the session has to be told, nil when it knows.
func (l *Limit) reportRow(r *row, now time.Time, session uint64) *fleetpb.WindowReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	tell := sent{session: session, changes: r.changes, final: r.final(now)}
	if r.sent == tell {
		return nil
	}
	r.sent = tell
	w := &fleetpb.WindowReport{
		Windows:  r.windows(),
		Final:    tell.final,
		Admitted: r.total.admitted, Refused: r.total.refused,
		Local: r.local, LocalShare: r.localShare,
	}
	// Keys of an open row would change until the next report anyway.
	if tell.final {
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
			k.Hash = l.hashOf(value)
			keys = append(keys, k)
		case t.refused > 0:
			k.Hash = l.hashOf(value)
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

func (l *Limit) hashOf(value string) string {
	if value == "" {
		return ""
	}
	return l.hash(value)
}
