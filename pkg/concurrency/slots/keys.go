package slots

// Keys count what one process has in flight of each key, where every key has the whole
// ceiling: requests of different keys take no slots from each other. They are owned by one
// caller at a time.
//
// A key is known while a request of it is in flight or waits, so there are never more keys than
// requests. Those that wait are in the queue of a Table, too, which bounds how many and how long.
type Keys struct {
	inFlight map[string]int64
	with     []int // how many keys have a number of requests in flight, by that number
	most     int64
	peak     peak

	lines   map[string]*line // of keys with a request that waits
	arrived uint64           // requests that ever waited
	ready   []string         // keys that wait and may have a free slot
	ceiling int64            // that was in force last
}

// NewKeys returns keys with nothing in flight.
func NewKeys() *Keys {
	return &Keys{inFlight: map[string]int64{}, with: make([]int, 1), lines: map[string]*line{}}
}

// Of returns how many requests of a key are in flight.
func (k *Keys) Of(key string) int64 { return k.inFlight[key] }

// Len returns how many keys have a request in flight.
func (k *Keys) Len() int { return len(k.inFlight) }

// Admit puts a request of the key in flight and reports true, if fewer than the ceiling are
// and no other request of the key waits.
func (k *Keys) Admit(key string, ceiling int64) bool {
	k.adjust(ceiling)
	if k.inFlight[key] >= ceiling || k.lines[key] != nil {
		return false
	}
	k.add(key)
	return true
}

// add puts a request of the key in flight.
func (k *Keys) add(key string) {
	n := k.inFlight[key]
	k.inFlight[key] = n + 1
	k.move(n, n+1)
	k.most = max(k.most, n+1)
	k.peak.see(k.most)
}

// Release ends a request of the key. It panics when none is in flight.
func (k *Keys) Release(key string) {
	n := k.inFlight[key]
	if n == 0 {
		panic("slots: no request of the key is in flight")
	}
	if n == 1 {
		delete(k.inFlight, key)
	} else {
		k.inFlight[key] = n - 1
	}
	k.move(n, n-1)
	if k.with[k.most] == 0 {
		k.most-- // the key that had the most has one less
	}
	k.freed(key)
}

// move counts a key with to in flight that had from. Those with none are not counted.
func (k *Keys) move(from, to int64) {
	if to == int64(len(k.with)) {
		k.with = append(k.with, 0)
	}
	if from > 0 {
		k.with[from]--
	}
	if to > 0 {
		k.with[to]++
	}
}

// InFlight returns how many requests of one key are in flight, of the one that has the
// most: what a ceiling for every key has to leave.
func (k *Keys) InFlight() int64 { return k.most }

// Peak returns the most in flight of one key since the mark that Forget last went back to,
// or since the beginning.
func (k *Keys) Peak() int64 { return k.peak.most() }

// Mark notes an instant for Forget, as of a Table.
func (k *Keys) Mark() { k.peak.mark(k.most) }

// Forget drops the peak before the last mark, as of a Table.
func (k *Keys) Forget() { k.peak.forget() }
