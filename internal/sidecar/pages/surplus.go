package pages

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// surplusBytes is how much connections have to free, or the process to allocate, before memory is
	// given back.
	surplusBytes = 512 << 10
	// A process is calm that allocates at most this between two looks, and frees no more: it serves
	// some hundreds of requests a second at most, and a burst of connections is over.
	calmBytes = 256 << 10
	calmTime  = 250 * time.Millisecond
	// surplusCost is how many times as long as it took to give memory back it is not given back
	// again: garbage is collected twice each time. So that takes a thousandth of a processor at most, but
	// for a heap that is collected for more than 60 ms.
	surplusCost           = 1000
	leastPause, mostPause = time.Second, time.Minute
)

// A Surplus gives memory back to the system that is no longer in use, such as behind a burst of
// connections or of requests, once connections end or are parked and the process is calm. The runtime
// would keep it for minutes: it collects garbage when the process has allocated about as much as it had.
// All methods may be called concurrently, and do not block.
type Surplus struct {
	give      func()
	allocated func() uint64

	freed  atomic.Int64 // bytes, since it was given back
	looks  atomic.Bool  // a timer runs
	timer  *time.Timer  // of the one that looks
	again  time.Time    // not before then
	had    uint64       // allocated when memory was given back, or at the beginning
	before uint64       // allocated at the look before
	seen   int64        // freed at the look before
}

// NewSurplus returns a Surplus of this process.
func NewSurplus() *Surplus { return newSurplus(collect, allocated) }

func newSurplus(give func(), allocated func() uint64) *Surplus {
	s := &Surplus{give: give, allocated: allocated, had: allocated()}
	s.timer = time.AfterFunc(mostPause, s.look)
	s.timer.Stop()
	return s
}

// Freed notes that n bytes are no longer in use, which may be none but garbage.
func (s *Surplus) Freed(n int64) {
	if freed := s.freed.Add(n); s.looks.CompareAndSwap(false, true) {
		s.before, s.seen = s.allocated(), freed
		s.timer.Reset(max(calmTime, time.Until(s.again)))
	}
}

// look gives memory back if the process is calm and there is enough of it. It looks again later where the
// process is not calm.
func (s *Surplus) look() {
	now, freed := s.allocated(), s.freed.Load()
	calm := now-s.before <= calmBytes && freed-s.seen <= calmBytes
	if s.before, s.seen = now, freed; !calm {
		s.timer.Reset(calmTime)
		return
	}
	if freed >= surplusBytes || now-s.had >= surplusBytes {
		s.freed.Store(0)
		begun := time.Now()
		s.give()
		took := time.Since(begun)
		s.again = begun.Add(took + min(max(surplusCost*took, leastPause), mostPause))
		s.had = s.allocated()
	}
	s.looks.Store(false)
}

// collect collects garbage twice, since a sync.Pool keeps its objects through the first time.
func collect() {
	runtime.GC()
	debug.FreeOSMemory()
}

// allocated returns how many bytes the process has allocated on its heap.
func allocated() uint64 {
	one := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(one)
	return one[0].Value.Uint64()
}
