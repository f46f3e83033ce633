package keys

import "github.com/weir-dev/weir/pkg/federation/ledger"

// A Book is what one memory of a coordinator granted of each key in the open window. It is
// not safe for concurrent use. The zero Book is that of a memory that nothing was granted
// before.
type Book struct {
	State
	// Share returns the hash of that one of n counters in which a key has a part that is one too
	// many: store.SharedHashOf.
	Share func(hash string, n int) string

	open   Window // that was open last
	shares int    // counters of it that keys share
	full   bool   // a key of it had to share one
	had    map[string]int64
	wants  map[int]int64 // units that should be set aside, by group
	own    own
}

// Take grants units of a key.
func (b *Book) Take(w Window, a KeyAsk) Grant {
	if !b.turnsTo(w) {
		return Grant{}
	}
	own, hash := GroupOf(a.Hash), a.Hash
	group, s := own, b.State
	had, known := b.had[hash]
	w, alone := b.windowOf(hash), b.own.alone(hash)
	switch {
	case !known && !alone && len(b.had)-b.own.counters >= b.open.keys():
		hash = b.Share(hash, b.shares)
		had, group, b.full = b.had[hash], GroupOf(hash), true
		w.Pool, w.Block = min(w.Pool, b.open.Pool), b.open.Block // others count there by these
		w.Pool -= s.Before.Of(w, own)                            // a memory before may have counted it by itself
		if s.Saved.Shared == 0 || !s.Saved.is(w) {
			s.Saved = Aside{} // nothing is, before the record says that keys share counters
		}
	case s.Before.Shared > 0 && s.Before.is(w): // the key may have been one of them
		w.Pool -= s.Before.Of(w, GroupOf(b.Share(hash, b.shares)))
	}
	g := s.Take(w, group, had, a.Ask)
	if g.Units > 0 {
		b.had[hash] = had + g.Units
		if alone && !known {
			b.own.counters++
		}
	}
	if g.Raise > 0 {
		b.wants[group] = max(b.wants[group], g.Raise)
	}
	return g
}

// turnsTo begins a window if it is another one, and reports false where it is over. How many keys
// are counted by themselves stays the same in a window: a key that moved to another counter
// would have its limit twice.
func (b *Book) turnsTo(w Window) bool {
	same := w.Length == b.open.Length
	switch {
	case same && w.Index < b.open.Index:
		return false
	case same && w.Index == b.open.Index && b.had != nil:
		w.Keys = b.open.Keys
		b.edited(w)
		b.open = w
		return true
	}
	b.had, b.wants, b.full, b.open = map[string]int64{}, map[int]int64{}, false, w
	b.own = own{since: w.Overrides}
	b.shares = max(1, w.keys()/sharing)
	if b.Before.Shared > 0 && b.Before.is(w) {
		b.shares = b.Before.Shared
	}
	return true
}

// shared returns how many counters keys share, 0 where none does.
func (b *Book) shared() int {
	if !b.full {
		return 0
	}
	return b.shares
}

// sharing is for how many keys that are counted by themselves there is one counter that the
// others share.
const sharing = 8

func (w *Window) keys() int {
	if w.Keys == 0 {
		return int(ledger.MaxKeys)
	}
	return int(w.Keys)
}

// Due reports whether units should be set aside.
func (b *Book) Due() bool { return len(b.wants) > 0 }

// Next returns the record that sets them aside, and forgets the wants.
func (b *Book) Next() Aside {
	next := b.Aside(b.open, b.wants, b.shared())
	clear(b.wants)
	return next
}

// Last returns the record of a memory that grants no more, of the window that it granted
// units of last.
func (b *Book) Last() Aside {
	if b.had == nil {
		return b.Before
	}
	used := map[int]int64{}
	for hash, had := range b.had {
		group := GroupOf(hash)
		used[group] = max(used[group], had)
	}
	return b.Granted(b.open, used, b.shared())
}

// Room returns how full the book of the window is that was open last.
func (b *Book) Room() Room { return Room{Counters: int64(len(b.had)), Full: b.full} }
