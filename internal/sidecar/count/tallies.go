package count

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// Chunks of tallies have firstChunk places, then twice as many as the one before up to mostChunk.
const (
	firstChunk = 8
	mostChunk  = 1024
	// growing is how many chunks there are up to the first that has mostChunk places.
	growing = 8
	// fewestSlots is how many slots the index of tallies begins with.
	fewestSlots = 8
)

// tallies are those of the keys of a row or of a sum. It takes about half of the memory of a map,
// and has a single pointer for each key: many are kept for minutes. They stay where they are, and
// none is removed.
type tallies struct {
	seed   maphash.Seed
	slots  []uint64  // upper half: of the hash of a key; lower half: its number from 1, 0 where none is
	chunks [][]named // of the keys by number
	n      int
}

// A named tally is that of a key.
type named struct {
	value string
	tally
}

// get returns the tally of a key, nil when there is none.
func (t *tallies) get(value string) *tally {
	if t.n == 0 {
		return nil
	}
	hash := maphash.String(t.seed, value)
	for i := t.startSlot(hash); t.slots[i] != 0; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i]>>32 == hash>>32 {
			if key := t.at(int(uint32(t.slots[i])) - 1); key.value == value {
				return &key.tally
			}
		}
	}
	return nil
}

// add adds a key that is not there, and returns its tally.
func (t *tallies) add(value string) *tally {
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
		t.slots = make([]uint64, fewestSlots)
	}
	if 4*(t.n+1) > 3*len(t.slots) {
		t.grow()
	}
	i := t.n
	if last := len(t.chunks) - 1; last < 0 || len(t.chunks[last]) == cap(t.chunks[last]) {
		places := mostChunk
		if len(t.chunks) < growing {
			places = firstChunk << len(t.chunks)
		}
		t.chunks = append(t.chunks, make([]named, 0, places))
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, named{value: value})
	t.n++
	t.enter(maphash.String(t.seed, value)&^(1<<32-1) | uint64(t.n))
	return &t.at(i).tally
}

// grow doubles the slots.
func (t *tallies) grow() {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	for _, s := range old {
		if s != 0 {
			t.enter(s)
		}
	}
}

// enter puts a key into a slot that is free.
func (t *tallies) enter(s uint64) {
	i := t.startSlot(s)
	for t.slots[i] != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = s
}

// startSlot returns where the search for a hash begins, which its upper half says.
func (t *tallies) startSlot(hash uint64) int { return int(hash>>32) & (len(t.slots) - 1) }

// at returns the key of a number from 0.
func (t *tallies) at(i int) *named {
	i += firstChunk
	if i < 2*mostChunk {
		chunk := bits.Len(uint(i)) - bits.Len(firstChunk)
		return &t.chunks[chunk][i-firstChunk<<chunk]
	}
	i -= 2 * mostChunk
	return &t.chunks[growing+i/mostChunk][i%mostChunk]
}

// all goes through the keys in the order in which they came.
func (t *tallies) all() iter.Seq2[string, *tally] {
	return func(yield func(string, *tally) bool) {
		for _, chunk := range t.chunks {
			for i := range chunk {
				if !yield(chunk[i].value, &chunk[i].tally) {
					return
				}
			}
		}
	}
}
