package traffic

import (
	"sync"
	"time"
)

const (
	bucket = 100 * time.Millisecond
	keep   = 30 * time.Minute
)

// A Series counts events by the time they happened, in buckets of 100 ms, and
// forgets them after half an hour. The zero value is empty.
type Series struct {
	mu     sync.Mutex
	counts map[int64]int64 // by the number of the bucket since 1970
	total  int64
	oldest int64 // buckets before it were dropped
}

// Add counts one event.
func (s *Series) Add(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[int64]int64{}
	}
	s.total++
	b := at.UnixNano() / int64(bucket)
	s.counts[b]++
	if first := b - int64(keep/bucket); first > s.oldest+int64(time.Minute/bucket) {
		for old := range s.counts {
			if old < first {
				delete(s.counts, old)
			}
		}
		s.oldest = first
	}
}

// Between returns how many events happened from one instant to before another.
// Both are taken as multiples of 100 ms.
func (s *Series) Between(from, to time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum int64
	for b := from.UnixNano() / int64(bucket); b < to.UnixNano()/int64(bucket); b++ {
		sum += s.counts[b]
	}
	return sum
}

// Total returns how many events happened ever.
func (s *Series) Total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}
