package slots

import "slices"

// Reconfigure goes on under another valid configuration. Requests in flight stay so,
// in the partition of the same name or else in the Rest. Requests that wait keep their
// order, wait as long as the new MaxWait says from their arrival, and are not put out
// because the queue became shorter.
func (t *Table) Reconfigure(c Config) {
	waiting, to := t.drain(), t.moves(c)
	t.config = Config{Partitions: slices.Clone(c.Partitions), Queue: c.Queue}
	t.parts = make([]part, 1, len(c.Partitions)+1)
	t.parts[0] = part{head: none, tail: none}
	for _, p := range c.Partitions {
		t.parts = append(t.parts, part{percent: int64(p.GuaranteedPercent), head: none, tail: none})
	}
	for i := range t.places {
		p := &t.places[i]
		if p.state == vacant {
			continue
		}
		p.part = to[p.part]
		if p.state == held {
			t.parts[p.part].inFlight++
		}
	}
	for _, i := range waiting {
		t.enqueue(i)
	}
	t.guarantee()
}

// moves returns which part each becomes.
func (t *Table) moves(c Config) []int {
	to := make([]int, len(t.parts))
	for i, p := range t.config.Partitions {
		to[i+1] = 1 + slices.IndexFunc(c.Partitions, func(q Partition) bool { return q.Name == p.Name })
	}
	return to
}

// drain empties the queues and returns what waited, in order of arrival.
func (t *Table) drain() []link {
	var out []link
	for i := t.oldest(); i != none; i = t.oldest() {
		t.dequeue(i)
		out = append(out, i)
	}
	return out
}
