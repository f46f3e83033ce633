package slots

// A part is what a table knows of one partition.
type part struct {
	percent    int64
	guarantee  int64
	inFlight   int64
	waiting    int
	head, tail link // of its queue, in order of arrival
}

// unused is how much of the guarantee is not in flight.
func (p *part) unused() int64 { return max(0, p.guarantee-p.inFlight) }

// Usage is what one partition has.
type Usage struct {
	InFlight  int64
	Waiting   int
	Guarantee int64 // slots of the ceiling that was in force last
}

// Usage returns what the partition at the index in Config.Partitions has, or the Rest.
func (t *Table) Usage(partition int) Usage {
	p := &t.parts[t.part(partition)]
	return Usage{InFlight: p.inFlight, Waiting: p.waiting, Guarantee: p.guarantee}
}

// part returns the index in parts of a partition.
func (t *Table) part(partition int) int {
	if partition < 0 || partition >= len(t.config.Partitions) {
		return 0
	}
	return partition + 1
}

// adjust brings the guarantees to the ceiling.
func (t *Table) adjust(ceiling int64) {
	ceiling = max(0, ceiling)
	if ceiling == t.ceiling {
		return
	}
	t.ceiling = ceiling
	t.guarantee()
}

// guarantee keeps for each partition its part of the ceiling.
func (t *Table) guarantee() {
	t.unused = 0
	for i := range t.parts {
		p := &t.parts[i]
		p.guarantee = t.ceiling * p.percent / 100
		t.unused += p.unused()
	}
}

// admits reports whether a request of the partition may be admitted now: below its
// guarantee, or in what the guarantees of the others leave.
func (t *Table) admits(part int) bool {
	p := &t.parts[part]
	if t.total >= t.ceiling {
		return false
	}
	return p.inFlight < p.guarantee || t.total < t.ceiling-t.unused
}

// count adds n to what a partition has in flight.
func (t *Table) count(part int, n int64) {
	p := &t.parts[part]
	t.unused -= p.unused()
	p.inFlight += n
	t.total += n
	t.unused += p.unused()
}
