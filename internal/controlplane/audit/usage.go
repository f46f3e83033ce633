package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An OpenWindow is what is known of a window that is not over: at least this much was
// admitted in it.
type OpenWindow struct {
	Began, Ends time.Time // on the store's clock
	Limit, Used int64
}

// open returns the open window of the rate with the longest windows, nil when no holder
// reported one of the store that serves. A limit with a key has none: holders name the keys
// of a window when it is over.
func (l *Limit) open() *OpenWindow {
	if l.keyed || len(l.promised.Promise.Rates) == 0 {
		return nil
	}
	var longest limiter.Rate
	for _, r := range l.promised.Promise.Rates {
		if r.Window > longest.Window {
			longest = r
		}
	}
	var newest *window
	for _, w := range l.windows {
		if w.id.since == l.promised.Since && w.id.windows == windowsOf(longest) && !w.over && (newest == nil || w.id.index > newest.id.index) {
			newest = w
		}
	}
	if newest == nil {
		return nil
	}
	out := &OpenWindow{
		Began: time.UnixMicro(int64(newest.id.open().Start())), Ends: time.UnixMicro(int64(newest.id.end())),
		Limit: longest.Limit,
	}
	for _, t := range newest.tallies {
		out.Used += t.admitted
	}
	return out
}

// A Usage is what all holders counted of one limit in one window that is over.
type Usage struct {
	Admitted, Refused int64
	// Complete says that every holder's count is in it. Otherwise it is at least that.
	Complete bool
}

// Usage returns what holders counted in a window of a limit without a key that ended
// between the instants before and over, whether or not a holder reported it. What
// was counted in a window that may have begun up to since, when the limit was still
// kept elsewhere, is left out.
func (l *Limit) Usage(open limiter.OpenWindow, before, over, since time.Time) Usage {
	out, heard := Usage{Complete: true}, false
	for _, p := range l.periods { // the window is the budget's, in whatever store
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

// silent reports whether certainly nothing was counted in a window that no holder reported,
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
		if !m.before.After(over) { // both of its last rounds report all before
			return false
		}
	}
	return true
}

// shownHottest is how many of the hottest keys figures name.
const shownHottest = 10

// hottest returns the keys that holders were asked for most in the last minutes, and then those
// that they were since they started. Each holder names its
// own; a key that is hot only over all of them may be missing.
func (l *Limit) hottest() []HotKey {
	if !l.keyed {
		return nil
	}
	sums := map[string]HotKey{}
	for _, m := range l.members {
		for _, k := range m.hottest {
			sum := sums[k.Hash]
			k.Admitted += sum.Admitted
			k.Refused += sum.Refused
			k.AdmittedPerMinute += sum.AdmittedPerMinute
			k.RefusedPerMinute += sum.RefusedPerMinute
			sums[k.Hash] = k
		}
	}
	all := slices.Collect(maps.Values(sums))
	slices.SortFunc(all, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.perMinute(), a.perMinute()),
			cmp.Compare(b.Admitted+b.Refused, a.Admitted+a.Refused), cmp.Compare(a.Hash, b.Hash))
	})
	return all[:min(len(all), shownHottest)]
}
