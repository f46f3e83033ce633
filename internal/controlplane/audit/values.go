package audit

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A ValueUsage is what all holders counted of single keys of one limit in one window that is
// over.
type ValueUsage struct {
	Usage
	Keys map[string]KeyCount // exact counts, by hash
	// Hidden is the most that a key that is not among Keys was admitted.
	Hidden int64
}

// Add adds what was counted elsewhere of the same keys. A key stays exact when both are.
func (u *ValueUsage) Add(other ValueUsage) {
	keys, hidden := map[string]KeyCount{}, u.Hidden+other.Hidden
	add := func(k KeyCount, in map[string]KeyCount, rest int64) {
		known, exact := in[k.Hash]
		if !exact && rest > 0 {
			hidden = max(hidden, k.Admitted+rest)
			return
		}
		keys[k.Hash] = KeyCount{Hash: k.Hash, Admitted: k.Admitted + known.Admitted, Refused: k.Refused + known.Refused}
	}
	for _, k := range u.Keys {
		add(k, other.Keys, other.Hidden)
	}
	for _, k := range other.Keys {
		add(k, u.Keys, u.Hidden)
	}
	u.Admitted, u.Refused = u.Admitted+other.Admitted, u.Refused+other.Refused
	u.Complete = u.Complete && other.Complete
	u.Keys, u.Hidden = keys, hidden
}

// Values is Usage for a limit with a key. It names the keys that more of was admitted than
// the limit divided by Config.Clusters, the most refused, and those that Inquire named.
func (l *Limit) Values(open limiter.OpenWindow, before, over, since time.Time) ValueUsage {
	out := ValueUsage{Usage: l.Usage(open, before, over, since)}
	total := out.Usage
	out.Usage = Usage{Complete: true}
	for _, w := range l.inPeriods(open) {
		if w.began.After(since) {
			out.Add(w.values())
		}
	}
	out.Usage = total
	return out
}

// inPeriods returns the windows with the number of open, of each store that counted some.
func (l *Limit) inPeriods(open limiter.OpenWindow) (all []*window) {
	for _, p := range l.periods {
		if w := l.windows[windowID{windows: windowsOf(open.Rate), index: open.Index, since: p.since}]; w != nil {
			all = append(all, w)
		}
	}
	return all
}

// values returns what is known of single keys of the window.
func (w *window) values() ValueUsage {
	named := map[string]struct{}{}
	for _, t := range w.tallies {
		for hash := range t.named() {
			named[hash] = struct{}{}
		}
	}
	for hash := range w.inquired {
		named[hash] = struct{}{}
	}
	out := ValueUsage{Keys: map[string]KeyCount{}}
	for _, t := range w.tallies {
		out.Hidden += t.rest()
	}
	for hash := range named {
		sum, all := KeyCount{Hash: hash}, true
		for _, t := range w.tallies {
			c, exact := t.count(hash)
			sum.Admitted, sum.Refused = sum.Admitted+c.Admitted, sum.Refused+c.Refused
			if !exact {
				sum.Admitted += t.rest()
				all = false
			}
		}
		if all {
			out.Keys[hash] = sum
		} else {
			out.Hidden = max(out.Hidden, sum.Admitted)
		}
	}
	return out
}

// rest returns the most that a key was admitted beyond what names it, which is nothing where all
// is named.
func (t *tally) rest() int64 {
	if t.partial == 0 {
		return 0
	}
	return min(t.unlisted(), t.hidden)
}

// Inquire has holders be asked for their exact counts of these keys in a window, which then is
// measured again. Values names them once all have answered.
func (l *Limit) Inquire(open limiter.OpenWindow, hashes []string) {
	for _, w := range l.inPeriods(open) {
		for _, hash := range hashes {
			if _, known := w.inquired[hash]; known || len(w.inquired) >= maxHashes {
				continue
			}
			if w.inquired == nil {
				w.inquired = map[string]struct{}{}
			}
			w.inquired[hash] = struct{}{}
			if w.query == nil || !contains(w.query.about(), hash) {
				w.reopen()
			}
		}
	}
}

func contains(set map[string]struct{}, hash string) bool {
	_, ok := set[hash]
	return ok
}
