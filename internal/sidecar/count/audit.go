package count

import (
	"cmp"
	"slices"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Audit answers a question about some keys of windows that are over. The answer
// is unknown rather than nothing when counts may have been there once.
func (b *Book) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply {
	reply := &fleetpb.AuditReply{Id: q.GetId()}
	b.mu.Lock()
	l, ok := b.limits[Name{q.GetNamespace(), q.GetPolicy(), q.GetLimit()}]
	b.mu.Unlock()
	t, valid := tupleOfQuery(q)
	if !ok || !valid {
		reply.Unknown = true
		return reply
	}
	reply.Keys, ok = l.audit(t, q.GetHashes())
	reply.Unknown = !ok
	return reply
}

func tupleOfQuery(q *fleetpb.AuditQuery) (t tuple, valid bool) {
	if len(q.GetWindows()) == 0 || len(q.GetWindows()) > limiter.MaxRates {
		return t, false
	}
	t.n = len(q.GetWindows())
	for i, w := range q.GetWindows() {
		t.open[i] = window{of: limiter.Rate{
			Window:  limiter.Micros(w.GetRate().GetWindowMicros()),
			Offset:  limiter.Micros(w.GetRate().GetOffsetMicros()),
			Monthly: w.GetRate().GetMonthly(),
		}, index: w.GetIndex(), since: limiter.Instant(q.GetSinceMicros())}
	}
	return t, true
}

// audit returns the counts of the keys in t. When t is a single window, they are
// over all tuples that the window is part of.
func (l *Limit) audit(t tuple, hashes []string) (keys []*fleetpb.KeyCount, known bool) {
	asked := make(map[string]*fleetpb.KeyCount, len(hashes))
	for _, h := range hashes {
		asked[h] = nil
	}
	l.mu.Lock()
	r := l.byTuple[t]
	newest, forgot := l.forgotten[t.shape()]
	known = !forgot || newest.before(t)
	overflow := false
	l.mu.Unlock()
	l.summing.Lock()
	if s := l.sums[t.open[0]]; s != nil && t.n == 1 {
		overflow = s.overflow
		l.pick(&s.keys, asked)
	}
	l.summing.Unlock()
	if r != nil {
		r.mu.Lock()
		overflow = overflow || r.overflow
		l.pick(&r.keys, asked)
		r.mu.Unlock()
	}
	for _, k := range asked {
		if k != nil {
			keys = append(keys, k)
		} else {
			known = known && !overflow // it may be among those not counted apart
		}
	}
	slices.SortFunc(keys, func(a, b *fleetpb.KeyCount) int { return cmp.Compare(a.GetHash(), b.GetHash()) })
	return keys, known
}

// pick adds the tallies of the keys that were asked for.
func (l *Limit) pick(keys *tallies, asked map[string]*fleetpb.KeyCount) {
	for value, t := range keys.all() {
		hash := l.hash(value)
		k, wanted := asked[hash]
		if !wanted {
			continue
		}
		if k == nil {
			k = &fleetpb.KeyCount{Hash: hash}
			asked[hash] = k
		}
		k.Admitted += t.admitted
		k.Refused += t.refused
	}
}
