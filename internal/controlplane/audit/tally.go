package audit

import (
	"iter"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A tally is what one holder let through in one window: the sum of its rows.
type tally struct {
	admitted, refused int64
	unbounded         int64 // admitted by the failure action with no share to bound it
	share             int64 // largest local share
	open              int   // rows that are not final
	ended             bool  // the row that ends with the window is final

	keys    map[string]listing
	partial int                 // rows whose keys do not account for all they count
	hidden  int64               // the most that a key no row names was admitted
	asked   map[string]struct{} // keys of the query that the holder answered; shared by all
	replies map[string]KeyCount // its exact counts of them, but for those that are 0
}

// A listing is what the rows that name a key count of it.
type listing struct {
	KeyCount
	partial int // how many of them are partial
}

// add adds a row, or takes it off when sign is -1.
func (t *tally) add(row counted, sign int64) {
	t.admitted += sign * row.Admitted
	t.refused += sign * row.Refused
	if row.LocalShare == 0 {
		t.unbounded += sign * row.Local
	}
	if !row.Final {
		t.open += int(sign)
	}
	partial := 0
	if row.partial() {
		partial = int(sign)
	}
	t.partial += partial
	if t.keys == nil && len(row.Keys) > 0 {
		t.keys = map[string]listing{}
	}
	for _, k := range row.Keys {
		c := t.keys[k.Hash]
		c.Admitted += sign * k.Admitted
		c.Refused += sign * k.Refused
		c.partial += partial
		if c == (listing{}) {
			delete(t.keys, k.Hash)
		} else {
			t.keys[k.Hash] = c
		}
	}
}

// hidden returns the most that a key the row does not name was admitted in its
// window.
func (r *Row) hidden(windows limiter.Rate) int64 {
	rest := r.Admitted
	for _, k := range r.Keys {
		rest -= k.Admitted
	}
	for i, w := range r.Windows.Slice() {
		if windowsOf(w.Rate) == windows && (r.Unlisted[i] > 0 || rest <= 0) {
			return r.Unlisted[i]
		}
	}
	return rest
}

// A counted is what is kept of a row until it is replaced: what is taken off then. Thousands of
// holders have one for each of many windows, so the windows are kept once for all of them.
type counted struct {
	Final             bool
	Admitted, Refused int64
	Local, LocalShare int64
	Keys              []KeyCount
}

// counted returns that of the row.
func (r *Row) counted() counted {
	return counted{Final: r.Final, Admitted: r.Admitted, Refused: r.Refused, Local: r.Local, LocalShare: r.LocalShare, Keys: r.Keys}
}

// partial reports whether the row counts more than its keys do.
func (r *counted) partial() bool {
	admitted, refused := r.Admitted, r.Refused
	for _, k := range r.Keys {
		admitted -= k.Admitted
		refused -= k.Refused
	}
	return admitted != 0 || refused != 0
}

// count returns what is known of one key, and whether that is all of it.
func (t *tally) count(hash string) (KeyCount, bool) {
	if _, ok := t.asked[hash]; ok {
		return t.replies[hash], true
	}
	c := t.keys[hash]
	return c.KeyCount, c.partial == t.partial
}

// named returns the keys that a row or a reply names.
func (t *tally) named() iter.Seq[string] {
	return func(yield func(string) bool) {
		for hash := range t.keys {
			if !yield(hash) {
				return
			}
		}
		for hash := range t.replies {
			if _, ok := t.keys[hash]; !ok && !yield(hash) {
				return
			}
		}
	}
}

// unlisted returns the units admitted that no key accounts for.
func (t *tally) unlisted() int64 {
	rest := t.admitted
	for hash := range t.named() {
		c, _ := t.count(hash)
		rest -= c.Admitted
	}
	return max(0, rest)
}
