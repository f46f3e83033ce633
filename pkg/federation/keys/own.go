package keys

import (
	"maps"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// An own is what a book knows of keys with limits of their own in the open window. The zero own
// is of none.
type own struct {
	// since are the overrides that the window began with. Each of their keys is counted by
	// itself, beside Window.Keys. One that is given an override later may share a counter, so it
	// goes on as it is, by the smaller limit where it shares: it would have its limit twice.
	since    []ledger.Override
	counters int // of those keys
	// least is the smallest limit that held in the window of keys whose override was edited. A
	// window that is open keeps it, as it keeps the smaller limit of all keys.
	least map[string]int64
}

// alone reports whether the key is counted by itself however many keys there are.
func (o *own) alone(hash string) bool {
	_, ok := ledger.OverrideOf(o.since, hash)
	return ok
}

// windowOf returns the open window as one key has it.
func (b *Book) windowOf(hash string) Window {
	w := b.open
	limit := b.limitOf(w, hash)
	if o, ok := ledger.OverrideOf(w.Overrides, hash); ok && w.Block > 0 {
		w.Block = max(1, o.Block)
	}
	w.Pool = max(0, limit-w.Withheld)
	return w
}

// limitOf returns the limit of a key in a window that is open.
func (b *Book) limitOf(w Window, hash string) int64 {
	limit := w.Pool + w.Withheld
	if o, ok := ledger.OverrideOf(w.Overrides, hash); ok {
		limit = o.Limit
	}
	if least, ok := b.own.least[hash]; ok {
		return min(limit, least)
	}
	return limit
}

// edited takes note that the open window goes on as w.
func (b *Book) edited(w Window) {
	if same(b.open.Overrides, w.Overrides) {
		return
	}
	for _, o := range slices.Concat(b.open.Overrides, w.Overrides) {
		if before, after := b.limitOf(b.open, o.Hash), b.limitOf(w, o.Hash); before != after {
			if b.own.least == nil {
				b.own.least = map[string]int64{}
			}
			b.own.least[o.Hash] = min(before, after)
		}
	}
	if len(b.own.least) > maxEdited {
		maps.DeleteFunc(b.own.least, func(hash string, _ int64) bool { _, granted := b.had[hash]; return !granted })
	}
}

// maxEdited is of how many keys the smallest limit is kept although they were granted nothing by
// themselves: a window may be long, and its overrides others every second. A key that is forgotten
// has the limit that holds, which is no more than the largest that did.
const maxEdited = 4 * ledger.MaxOverrides

// same reports whether two lists are equal, at once where they are one.
func same(a, b []ledger.Override) bool {
	if len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] {
		return true
	}
	return slices.Equal(a, b)
}
