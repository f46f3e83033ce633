package simulate

// An instant is true time in a run, in nanoseconds since it began. Nobody in the
// run can read it: each node has a clock of its own.
type instant = int64

// An event is something that happens at an instant.
type event struct {
	at  instant
	seq uint64
	do  func()
}

// A queue holds the events to come. Events of one instant happen in the order in
// which they were added, so a run never depends on chance.
type queue struct {
	heap  []event // a binary heap, earliest first
	added uint64
}

func (q *queue) add(at instant, do func()) {
	q.added++
	q.heap = append(q.heap, event{at, q.added, do})
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			break
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

// next returns the instant of the earliest event, or false when there is none.
func (q *queue) next() (instant, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

// take removes the earliest event; there is one.
func (q *queue) take() event {
	first, last := q.heap[0], len(q.heap)-1
	q.heap[0], q.heap[last] = q.heap[last], event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && q.before(child+1, child) {
			child++
		}
		if !q.before(child, i) {
			return first
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
}

func (q *queue) before(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}
