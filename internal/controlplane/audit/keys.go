package audit

import (
	"cmp"
	"maps"
	"slices"
)

// maxHashes is how many keys one query asks about. When more may exceed their
// limit in one window, the window is unknown.
const maxHashes = 512

// A query is the second phase of measuring a window of a limit with a key: the
// exact counts of the keys that matter.
type query struct {
	id      uint64
	hashes  []string            // ascending
	set     map[string]struct{} // about
	asked   map[Holder]int      // holders that have not replied, with the number of their rounds when asked
	unknown bool                // some count cannot be had
}

// about returns the hashes as a set, which all tallies share.
func (q *query) about() map[string]struct{} {
	if len(q.set) != len(q.hashes) {
		q.set = make(map[string]struct{}, len(q.hashes))
		for _, hash := range q.hashes {
			q.set[hash] = struct{}{}
		}
	}
	return q.set
}

func (q *query) pending(h Holder) bool {
	_, ok := q.asked[h]
	return ok
}

// ask begins the second phase. It returns false when no holder has to be asked.
func (l *Limit) ask(w *window) (Query, bool) {
	if !l.keyed || w.query != nil {
		return Query{}, false
	}
	ceilings := l.ceilingsOf(w)
	hashes, all := w.suspects(ceilings, max(1, l.promised.Clusters))
	l.queries++
	w.query = &query{
		id: l.queries, hashes: hashes, asked: map[Holder]int{}, unknown: !all || w.hidden() > ceilings("").most,
	}
	for h, t := range w.tallies {
		if t.knows(hashes) {
			continue
		}
		if m := l.members[h]; m != nil {
			w.query.asked[h] = m.rounds
		} else {
			w.query.unknown = true // it left and can no longer be asked
		}
	}
	if len(w.query.asked) == 0 {
		return Query{}, false
	}
	q := Query{ID: w.query.id, Since: w.id.since, Hashes: hashes}
	q.Window.N = 1
	q.Window.Open[0] = w.id.open()
	q.Window.Open[0].Limit = w.claimed
	for h := range w.query.asked {
		q.Holders = append(q.Holders, h)
	}
	slices.SortFunc(q.Holders, Holder.compare)
	return q, true
}

// hidden returns the most that the fleet may have admitted of a key that no
// holder names.
func (w *window) hidden() int64 {
	var sum int64
	for _, t := range w.tallies {
		sum += t.hidden
	}
	return sum
}

// suspects returns the keys that may have exceeded their part of their ceiling, the most refused
// ones and those that were inquired about, and false when not all of the first fit.
func (w *window) suspects(of ceilings, clusters int64) ([]string, bool) {
	most := map[string]KeyCount{} // of each key that is listed: admitted at most, and known refusals
	var rests int64               // that any key may have of holders that do not name all they admitted
	for _, t := range w.tallies {
		rest := t.rest()
		rests += rest
		for hash := range t.named() {
			c, exact := t.count(hash)
			sum := most[hash]
			sum.Admitted += c.Admitted
			sum.Refused += c.Refused
			if exact {
				sum.Admitted -= rest
			}
			most[hash] = sum
		}
	}
	for hash, sum := range most {
		sum.Hash = hash
		sum.Admitted += rests
		most[hash] = sum
	}
	var over, refused []KeyCount
	for _, c := range most {
		switch {
		case c.Admitted > of(c.Hash).most/clusters:
			over = append(over, c)
		case c.Refused > 0:
			refused = append(refused, c)
		}
	}
	slices.SortFunc(over, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Admitted, a.Admitted), cmp.Compare(a.Hash, b.Hash))
	})
	slices.SortFunc(refused, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Hash, b.Hash))
	})
	chosen := slices.Concat(over, refused)
	chosen = chosen[:min(len(chosen), maxHashes)]
	hashes := make([]string, len(chosen))
	for i, c := range chosen {
		hashes[i] = c.Hash
	}
	hashes = slices.AppendSeq(hashes, maps.Keys(w.inquired))
	slices.Sort(hashes)
	return slices.Compact(hashes), len(over) <= maxHashes
}

// knows reports whether the tally has the exact counts of every key of hashes.
func (t *tally) knows(hashes []string) bool {
	if t.partial == 0 {
		return true
	}
	for _, hash := range hashes {
		if _, exact := t.count(hash); !exact {
			return false
		}
	}
	return true
}

// Reply enters a holder's answer to a query: keys it never saw are left out, and
// unknown means that it no longer has the counts.
func (l *Limit) Reply(h Holder, id uint64, keys []KeyCount, unknown bool) {
	for _, w := range l.windows {
		if w.query != nil && w.query.id == id && w.query.pending(h) {
			w.reply(h, keys, unknown)
			return
		}
	}
}

func (w *window) reply(h Holder, keys []KeyCount, unknown bool) {
	delete(w.query.asked, h)
	if unknown {
		w.query.unknown = true
		return
	}
	t := w.tallies[h]
	t.asked, t.replies = w.query.about(), make(map[string]KeyCount, len(keys))
	for _, k := range keys {
		if _, asked := t.asked[k.Hash]; asked {
			t.replies[k.Hash] = k
		}
	}
}

// answered reports whether no reply is waited for. Members that only go on
// reporting are given up.
func (w *window) answered(members map[Holder]*member) bool {
	if w.query == nil {
		return true
	}
	for h, at := range w.query.asked {
		if m := members[h]; m != nil && m.rounds <= at+patience {
			return false
		}
		delete(w.query.asked, h)
		w.query.unknown = true
	}
	return true
}
