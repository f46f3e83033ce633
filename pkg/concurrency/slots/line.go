package slots

import (
	"cmp"
	"slices"
)

// A line is the requests of one key that wait, those that came first in front.
type line struct {
	waiting []waiting
	ready   bool // the key is in Keys.ready
}

type waiting struct {
	ticket  Ticket
	arrival uint64
}

// Waiting returns how many requests of a key wait.
func (k *Keys) Waiting(key string) int {
	if l := k.lines[key]; l != nil {
		return len(l.waiting)
	}
	return 0
}

// Wait puts a request of the key, which Admit has just refused, behind those of the key that
// wait. The ticket is that of Table.Wait.
func (k *Keys) Wait(key string, t Ticket) {
	l := k.lines[key]
	if l == nil {
		l = &line{}
		k.lines[key] = l
	}
	k.arrived++
	l.waiting = append(l.waiting, waiting{t, k.arrived})
}

// Leave takes a request of the key out of those that wait.
func (k *Keys) Leave(key string, t Ticket) {
	l := k.lines[key]
	if l == nil {
		return
	}
	if i := slices.IndexFunc(l.waiting, func(w waiting) bool { return w.ticket == t }); i >= 0 {
		k.remove(key, l, i)
	}
}

// Next admits the request that waited longest of a key that has fewer than the ceiling in
// flight, and returns its ticket; false when no request may be admitted. A key without a free slot
// does not hold up those of others.
func (k *Keys) Next(ceiling int64) (Ticket, bool) {
	k.adjust(ceiling)
	for len(k.ready) > 0 {
		key := k.ready[0]
		l := k.lines[key]
		if l != nil && k.inFlight[key] < ceiling {
			t := l.waiting[0].ticket
			k.remove(key, l, 0)
			k.add(key)
			return t, true
		}
		if l != nil {
			l.ready = false
		}
		k.ready = k.ready[1:]
	}
	k.ready = nil
	return Ticket{}, false
}

// adjust notes the ceiling. When it rises any key that waits may have a free slot. Otherwise only a
// key with a request that ended may, so not all keys are looked at each time.
func (k *Keys) adjust(ceiling int64) {
	rises := ceiling > k.ceiling
	k.ceiling = ceiling
	if !rises || len(k.lines) == 0 {
		return
	}
	type first struct {
		key     string
		arrival uint64
	}
	all := make([]first, 0, len(k.lines)) // thousands may wait, so no line is looked up to compare it
	for key, l := range k.lines {
		l.ready = true
		all = append(all, first{key, l.waiting[0].arrival})
	}
	slices.SortFunc(all, func(a, b first) int { return cmp.Compare(a.arrival, b.arrival) })
	k.ready = make([]string, len(all))
	for i := range all {
		k.ready[i] = all[i].key
	}
}

// freed notes that a request of the key ended.
func (k *Keys) freed(key string) {
	if l := k.lines[key]; l != nil && !l.ready {
		l.ready = true
		k.ready = append(k.ready, key)
	}
}

// remove takes a request out of the line of a key.
func (k *Keys) remove(key string, l *line, i int) {
	if i == 0 {
		l.waiting = l.waiting[1:] // those that waited longest mostly leave, and the others do not move
	} else {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	if len(l.waiting) == 0 {
		delete(k.lines, key)
	}
}
