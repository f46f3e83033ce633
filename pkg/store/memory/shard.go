package memory

import (
	"maps"
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/journal"
)

// sweepStep is how many counters one call looks at, in the shard whose turn it is.
// Because it is more than the one counter a call can add, sweeping catches up with
// any rate of new keys.
const sweepStep = 2

// compactAbove is the number of counters below which no memory is worth saving.
const compactAbove = 256

// A shard is a part of the counters under one lock.
type shard struct {
	mu       sync.Mutex
	slots    map[store.Key]int // positions in counters
	counters []counter
	hand     int // the counter sweep looks at next
	peak     int // most counters since the last compaction
	dropped  func(*counter)
}

// A counter is one key and its state.
type counter struct {
	key store.Key
	limiter.State
	account *journal.Account // of a durable counter, once it was asked
}

// counter returns key's counter, new when it was never seen. The caller holds mu,
// and the pointer is valid as long.
func (s *shard) counter(key store.Key) *counter {
	i, ok := s.slots[key]
	if !ok {
		i = len(s.counters)
		s.slots[key] = i
		s.counters = append(s.counters, counter{key: key})
		s.peak = max(s.peak, len(s.counters))
	}
	return &s.counters[i]
}

// state returns what is remembered of a key, of one never seen nothing. The caller
// holds mu.
func (s *shard) state(key store.Key) limiter.State {
	if i, ok := s.slots[key]; ok {
		return s.counters[i].State
	}
	return limiter.State{}
}

// sweep drops ended counters among the next few. Every call of a store does a
// little of it, so there is no pause and no timer. The caller holds mu.
func (s *shard) sweep(now limiter.Instant) {
	for range min(sweepStep, len(s.counters)) {
		s.hand %= len(s.counters)
		if s.counters[s.hand].ended(now) {
			s.drop(s.hand) // the last counter takes the place: look here again
		} else {
			s.hand++
		}
	}
}

func (s *shard) drop(i int) {
	last := len(s.counters) - 1
	s.dropped(&s.counters[i])
	delete(s.slots, s.counters[i].key)
	if i != last {
		s.counters[i] = s.counters[last]
		s.slots[s.counters[i].key] = i
	}
	s.counters[last] = counter{}
	s.counters = s.counters[:last]
	if s.peak > compactAbove && len(s.counters) < s.peak/4 {
		s.compact()
	}
}

// compact gives back the memory that a flood of keys left behind: neither slices
// nor maps shrink by themselves. It copies a third of what was dropped before.
func (s *shard) compact() {
	s.counters = append(make([]counter, 0, 2*len(s.counters)), s.counters...)
	slots := make(map[store.Key]int, 2*len(s.slots))
	maps.Copy(slots, s.slots)
	s.slots, s.peak = slots, len(s.counters)
}

// ended reports whether Step no longer needs the counter's state.
func (c *counter) ended(now limiter.Instant) bool { return c.KeepFor(now) <= 0 }
