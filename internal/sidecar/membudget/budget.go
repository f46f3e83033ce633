package membudget

import (
	"net/netip"
	"sync"
	"sync/atomic"
)

// A Class is what memory is taken for.
type Class int

// The classes.
const (
	Connections Class = iota
	Heads             // beyond their first 4 KiB
	Requests          // in flight, and those that wait for a slot or a limit
	Bodies
	Keys   // that have counters of their own
	Counts // of keys, that reports are made of
	classes
)

// String returns the value of the label.
func (c Class) String() string {
	return [classes]string{"connections", "heads", "requests", "bodies", "keys", "counts"}[c]
}

// Classes lists all classes.
func Classes() []Class { return []Class{Connections, Heads, Requests, Bodies, Keys, Counts} }

const (
	// fairness is how much an address may have taken for each byte that is left: alone it
	// gets four fifths of the budget, and n of them leave 1/(1+4n) to others ("dynamic
	// threshold"; Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
	fairness = 4
	// reservedPart is which part of the budget only a reserved port may use.
	reservedPart = 16
	// fewPart is which part an address may have taken however little is left.
	fewPart = 64
	// batchPart is which part of the budget is made at least, once some has to be.
	batchPart = 64
	// sparePart is the part of the budget up to which what is only of use is admitted, and roomPart
	// the same for memory that each request would take.
	sparePart, roomPart = 2, 4
)

// A Budget is the memory for what clients have the sidecar keep. All methods may be called
// concurrently. A request takes and gives by atomic additions, without a lock.
type Budget struct {
	size    int64
	taken   [classes]atomic.Int64
	refused [classes]atomic.Int64
	closed  [phases]atomic.Int64
	freed   func(n int64)         // see OnFreed
	opened  func(connections int) // see OnOpened

	mu    sync.Mutex
	open  map[*Connection]struct{}
	peers map[netip.Addr]*peer
}

// A peer is an address that connections come from.
type peer struct {
	taken atomic.Int64
	open  int // connections; guarded by Budget.mu
}

// New returns a budget of that many bytes.
func New(size int64) *Budget {
	return &Budget{size: size, freed: func(int64) {}, opened: func(int) {}, open: map[*Connection]struct{}{}, peers: map[netip.Addr]*peer{}}
}

// OnFreed has f called whenever a connection gives back n bytes, since it has ended or is parked. It
// is to be called before there are connections. f must not block.
func (b *Budget) OnFreed(f func(n int64)) { b.freed = f }

// OnOpened has f called with the number of connections that are open whenever that changes. It is to
// be called before there are connections. f must not use the budget.
func (b *Budget) OnOpened(f func(connections int)) { b.opened = f }

// Size returns the size in bytes.
func (b *Budget) Size() int64 { return b.size }

// Taken returns how many bytes are taken for the class.
func (b *Budget) Taken(c Class) int64 { return b.taken[c].Load() }

// Refused returns how often there was too little left for one of the class.
func (b *Budget) Refused(c Class) int64 { return b.refused[c].Load() }

// Closed returns how many connections that were idle, or in the middle of a head, were closed to
// make room.
func (b *Budget) Closed() (idle, head int64) { return b.closed[idling].Load(), b.closed[inHead].Load() }

func (b *Budget) total() (n int64) {
	for c := range b.taken {
		n += b.taken[c].Load()
	}
	return n
}

// TakeSpare takes what is only of use, while more than half of the budget is left.
func (b *Budget) TakeSpare(c Class, n int64) bool { return b.takeUpTo(c, n, b.size/sparePart) }

// TakeRoom takes what makes a request cheaper to serve, while more than three quarters of the budget are
// left.
func (b *Budget) TakeRoom(c Class, n int64) bool { return b.takeUpTo(c, n, b.size/roomPart) }

func (b *Budget) takeUpTo(c Class, n, most int64) bool {
	b.taken[c].Add(n)
	if b.total() <= most {
		return true
	}
	b.taken[c].Add(-n)
	return false
}

// Give gives back what was taken for no connection.
func (b *Budget) Give(c Class, n int64) { b.taken[c].Add(-n) }

// A shortage is why there was too little left.
type shortage int

const (
	none    shortage = iota
	ofAll            // too much is taken
	ofShare          // the address has taken its share
)

// try takes n bytes of the first bound bytes for p, or nothing.
func (b *Budget) try(c Class, n, bound int64, p *peer) shortage {
	b.taken[c].Add(n)
	p.taken.Add(n)
	left := bound - b.total()
	switch {
	case left < 0:
		b.put(c, n, p)
		return ofAll
	case p.taken.Load() > max(fairness*left, b.size/fewPart):
		b.put(c, n, p)
		return ofShare
	}
	return none
}

func (b *Budget) put(c Class, n int64, p *peer) {
	b.taken[c].Add(-n)
	p.taken.Add(-n)
}
