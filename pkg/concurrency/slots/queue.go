package slots

// A link names a place by its index.
type link int32

// none is not a place.
const none link = -1

// enqueue puts a place at the end of its partition's queue. Requests of one partition
// may be admitted or not alike, so only the first of each has to be looked at.
func (t *Table) enqueue(i link) {
	p := &t.places[i]
	q := &t.parts[p.part]
	p.prev, p.next = q.tail, none
	if q.tail == none {
		q.head = i
	} else {
		t.places[q.tail].next = i
	}
	q.tail = i
	q.waiting++
	t.waiting++
}

// dequeue takes a place out of its partition's queue.
func (t *Table) dequeue(i link) {
	p := &t.places[i]
	q := &t.parts[p.part]
	if p.prev == none {
		q.head = p.next
	} else {
		t.places[p.prev].next = p.next
	}
	if p.next == none {
		q.tail = p.prev
	} else {
		t.places[p.next].prev = p.prev
	}
	p.prev, p.next = none, none
	q.waiting--
	t.waiting--
}

// first returns the place that waited longest of those that may be admitted.
func (t *Table) first() link {
	return t.earliest(t.admits)
}

// oldest returns the place that waited longest.
func (t *Table) oldest() link {
	return t.earliest(func(int) bool { return true })
}

func (t *Table) earliest(among func(part int) bool) link {
	best := none
	if t.waiting == 0 {
		return best
	}
	for i := range t.parts {
		head := t.parts[i].head
		if head == none || !among(i) {
			continue
		}
		if best == none || t.places[head].arrival < t.places[best].arrival {
			best = head
		}
	}
	return best
}
