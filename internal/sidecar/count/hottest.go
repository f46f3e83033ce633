package count

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// Bounds of the hottest keys: the more are kept, the smaller is their error.
const (
	keptHottest     = 128
	reportedHottest = 20
)

// A sketch holds the keys that were asked for most over many rows, in bounded memory:
// Space-Saving (Metwally, Agrawal and El Abbadi 2005), merged row by row (Agarwal et
// al. 2012). A row's count of a kept key is exact; only the demand for the key before
// it was kept is not known, and that is bounded.
type sketch struct {
	mu     sync.Mutex // guards the rest
	keys   []hotKey
	unseen int64 // no other key was asked for more
	lately recent
}

// A hotKey was admitted and refused that much at least. It was asked for at most
// missed units more.
type hotKey struct {
	value             string
	admitted, refused int64
	missed            int64
	lately            rate
}

// least and most return what the key was asked for, between them.
func (k *hotKey) least() int64 { return k.admitted + k.refused }
func (k *hotKey) most() int64  { return k.least() + k.missed }

// absorb adds the counts of rows that are over. Later counts of a row are left out.
func (s *sketch) absorb(rows []*row) {
	if len(rows) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		r.mu.Lock()
		s.add(r)
		r.absorbed = true
		r.mu.Unlock()
	}
}

// with returns the sketch of the rows that were absorbed and of those of rows that were
// not.
func (s *sketch) with(rows []*row) *sketch {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := &sketch{keys: slices.Clone(s.keys), unseen: s.unseen}
	for _, r := range rows {
		r.mu.Lock()
		if !r.absorbed {
			all.add(r)
		}
		r.mu.Unlock()
	}
	return all
}

// add adds what the row counted so far; its lock is held.
func (s *sketch) add(r *row) {
	kept := make(map[string]bool, len(s.keys))
	for i := range s.keys {
		k := &s.keys[i]
		kept[k.value] = true
		if t := r.keys.get(k.value); t != nil {
			k.admitted += t.admitted
			k.refused += t.refused
		}
	}
	for _, l := range r.leaders.keys {
		if !kept[l.value] {
			s.keys = append(s.keys, hotKey{
				value: l.value, admitted: l.tally.admitted, refused: l.tally.refused, missed: s.unseen,
			})
		}
	}
	s.unseen += r.leaders.floor
	s.cut()
}

// cut keeps the hottest keys.
func (s *sketch) cut() {
	slices.SortFunc(s.keys, func(a, b hotKey) int {
		return cmp.Or(cmp.Compare(b.most(), a.most()), cmp.Compare(a.value, b.value))
	})
	for _, k := range s.keys[min(len(s.keys), keptHottest):] {
		s.unseen = max(s.unseen, k.most())
	}
	s.keys = slices.Clip(s.keys[:min(len(s.keys), keptHottest)])
}

// hottestKeys returns the keys that were asked for most in the last minutes, most first, and
// then those that were since the process started; none of a limit without a key.
func (l *Limit) hottestKeys(now time.Time) []*fleetpb.HotKey {
	if !l.settings.Load().Keyed {
		return nil
	}
	l.mu.Lock()
	rows, begun := slices.Clone(l.rows), l.begun
	l.mu.Unlock()
	all := l.hottest.with(rows)
	l.hottest.date(all.keys, begun, now)
	slices.SortStableFunc(all.keys, func(a, b hotKey) int {
		return cmp.Or(cmp.Compare(b.lately.perMinute(), a.lately.perMinute()), cmp.Compare(b.least(), a.least()))
	})
	var named []*fleetpb.HotKey
	for _, k := range all.keys[:min(len(all.keys), reportedHottest)] {
		named = append(named, &fleetpb.HotKey{
			Hash: l.hash(k.value), Admitted: k.admitted, Refused: k.refused, Error: k.missed,
			AdmittedPerMinute: k.lately.admitted, RefusedPerMinute: k.lately.refused,
		})
	}
	return named
}
