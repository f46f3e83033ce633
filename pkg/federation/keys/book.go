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

	open  Window // that was open last
	full  bool   // a key of it had to share a counter
	had   map[string]int64
	wants map[int]int64 // units that should be set aside, by group
}

// Take grants units of a key.
func (b *Book) Take(w Window, a KeyAsk) Grant {
	switch same := w.Length == b.open.Length; {
	case same && w.Index < b.open.Index:
		return Grant{}
	case !same || w.Index > b.open.Index || b.had == nil:
		b.had, b.wants, b.full = map[string]int64{}, map[int]int64{}, false
	}
	b.open = w
	hash := a.Hash
	had, known := b.had[hash]
	if most := w.keys(); !known && len(b.had) >= most {
		hash = b.Share(hash, max(1, most/sharing))
		had, b.full = b.had[hash], true
	}
	group := GroupOf(hash)
	g := b.State.Take(w, group, had, a.Ask)
	if g.Units > 0 {
		b.had[hash] = had + g.Units
	}
	if g.Raise > 0 {
		b.wants[group] = max(b.wants[group], g.Raise)
	}
	return g
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
	next := b.Aside(b.open, b.wants)
	clear(b.wants)
	return next
}

// Last returns the record of a memory that grants no more, of the window that it granted
// units of last.
func (b *Book) Last() Aside {
	used := map[int]int64{}
	for hash, had := range b.had {
		group := GroupOf(hash)
		used[group] = max(used[group], had)
	}
	return b.Granted(b.open, used)
}

// Room returns how full the book of the window is that was open last.
func (b *Book) Room() Room { return Room{Counters: int64(len(b.had)), Full: b.full} }
