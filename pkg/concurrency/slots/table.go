package slots

import "github.com/weir-dev/weir/pkg/limiter"

// A Table is the slots of one process. It is owned by one caller at a time.
//
// In steady state nothing allocates: the places of tickets are used again, and grow to
// the most that were in use at once.
type Table struct {
	config  Config
	places  []place
	free    link // first of the places not in use, chained by next
	ceiling int64
	parts   []part // of each partition, the Rest first
	waiting int    // in all queues
	arrived uint64 // requests that ever waited
	total   int64  // in flight
	unused  int64  // of the guarantees: Σ max(0, guarantee − in flight)
	peak    peak
}

// A place is what one ticket stands for.
type place struct {
	version    uint64 // of the ticket that is valid; raised when that one ends
	state      state
	part       int // index in parts
	arrival    uint64
	since      limiter.Instant // when it arrived, of one that waits
	use        Use
	prev, next link
}

type state uint8

const (
	vacant state = iota
	waits
	held
)

// Use is how much was in flight when a request was admitted.
type Use struct {
	InFlight int64 // with the request itself
	Ceiling  int64 // that was in force
}

// A Ticket stands for a request that was admitted or waits. The zero Ticket stands for
// none. Copies are the same ticket.
type Ticket struct {
	table   *Table
	index   link
	version uint64
}

// Outcome says what became of a request.
type Outcome uint8

// The outcomes.
const (
	Admitted Outcome = iota + 1
	Queued           // its ticket comes out of Next or Expire, unless it is released before
	Full             // no slot, and no queue
	Overflow         // no slot, and the queue is full
)

// New returns a table with nothing in flight. The configuration has to be valid.
func New(c Config) *Table {
	t := &Table{free: none}
	t.Reconfigure(c)
	return t
}

// Acquire asks for a slot below the ceiling, for a request of the partition at the
// index in Config.Partitions; any other index is the Rest. The ticket is of use when
// the outcome is Admitted or Queued.
func (t *Table) Acquire(now limiter.Instant, partition int, ceiling int64) (Ticket, Outcome) {
	t.adjust(ceiling)
	part := t.part(partition)
	if t.admits(part) && t.first() == none {
		i := t.take(part)
		t.admit(i)
		return t.ticket(i), Admitted
	}
	return t.wait(now, part, t.config.Queue.MaxLength-t.waiting)
}

// wait puts a request into the queue, if it has room for one.
func (t *Table) wait(now limiter.Instant, part, room int) (Ticket, Outcome) {
	switch {
	case t.config.Queue.MaxLength == 0:
		return Ticket{}, Full
	case room <= 0:
		return Ticket{}, Overflow
	}
	i := t.take(part)
	t.arrived++
	p := &t.places[i]
	p.state, p.arrival, p.since = waits, t.arrived, now
	t.enqueue(i)
	return t.ticket(i), Queued
}

// Release ends what the ticket stands for: it frees the slot, or leaves the queue. It
// returns the use at the admission to a slot and true. A ticket that was released
// before, one that expired and one of another table do nothing.
func (t *Table) Release(ticket Ticket) (Use, bool) {
	if !t.valid(ticket) {
		return Use{}, false
	}
	i := ticket.index
	p := &t.places[i]
	if p.state == waits {
		t.dequeue(i)
		t.vacate(i)
		return Use{}, false
	}
	use := p.use
	t.count(p.part, -1)
	t.vacate(i)
	return use, true
}

// Next admits the request that waited longest of those that may be admitted below the
// ceiling, and returns its ticket; false when there is none.
func (t *Table) Next(ceiling int64) (Ticket, bool) {
	t.adjust(ceiling)
	i := t.first()
	if i == none {
		return Ticket{}, false
	}
	t.dequeue(i)
	t.admit(i)
	return t.ticket(i), true
}

// Expire takes a request out of the queue whose deadline has come, and returns its
// ticket, which is of no use any more; false when there is none.
func (t *Table) Expire(now limiter.Instant) (Ticket, bool) {
	if at, ok := t.Deadline(); !ok || at > now {
		return Ticket{}, false
	}
	return t.Flush()
}

// Flush takes the request that waits longest out of the queue, whatever its deadline,
// and returns its ticket, which is of no use any more; false when none waits.
func (t *Table) Flush() (Ticket, bool) {
	i := t.oldest()
	if i == none {
		return Ticket{}, false
	}
	k := t.ticket(i)
	t.dequeue(i)
	t.vacate(i)
	return k, true
}

// Deadline returns when the first request in the queue expires; false when none waits.
func (t *Table) Deadline() (limiter.Instant, bool) {
	i := t.oldest()
	if i == none {
		return 0, false
	}
	return t.places[i].since.Add(t.config.Queue.MaxWait), true
}

// InFlight returns how many slots are in use.
func (t *Table) InFlight() int64 { return t.total }

// Waiting returns how many requests are in the queue.
func (t *Table) Waiting() int { return t.waiting }

// valid reports whether the ticket stands for something here.
func (t *Table) valid(k Ticket) bool {
	return k.table == t && k.version == t.places[k.index].version
}

func (t *Table) ticket(i link) Ticket {
	return Ticket{table: t, index: i, version: t.places[i].version}
}

// admit puts a place in flight.
func (t *Table) admit(i link) {
	p := &t.places[i]
	t.count(p.part, 1)
	p.state, p.use = held, Use{InFlight: t.total, Ceiling: t.ceiling}
	t.peak.see(t.total)
}

// take returns a place that was vacant.
func (t *Table) take(part int) link {
	if t.free == none {
		t.places = append(t.places, place{next: none})
		t.free = link(len(t.places) - 1)
	}
	i := t.free
	p := &t.places[i]
	t.free = p.next
	p.part, p.prev, p.next = part, none, none
	return i
}

// vacate gives a place back. Tickets for it are of no use any more.
func (t *Table) vacate(i link) {
	p := &t.places[i]
	p.version++
	p.state, p.next = vacant, t.free
	t.free = i
}
