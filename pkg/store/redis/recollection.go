package redis

import (
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// recollections are those of a partition: of counters that survive what the server
// survives, and of the others.
type recollections struct {
	mu                sync.Mutex
	volatile, durable store.Recollection
}

func (rs *recollections) of(r limiter.Retention) *store.Recollection {
	if r.Durable {
		return &rs.durable
	}
	return &rs.volatile
}

// get returns what is known for a limit, by a clock.
func (rs *recollections) get(r limiter.Retention, clock *floor) store.Recollection {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return known(*rs.of(r), clock)
}

// known returns r by what is known of a clock. A memory that was never heard of may be
// younger than what others know.
func known(r store.Recollection, clock *floor) store.Recollection {
	r.Behind = clock.Behind()
	if at := clock.doubtful.Load(); r.Since == 0 && at > 0 {
		r.Doubtful = max(r.Doubtful, limiter.Instant(at)+1)
	}
	return r
}

// note notes that the memory which began at since answered, when the clock showed now.
func (rs *recollections) note(r limiter.Retention, since, now limiter.Instant, clock *floor) {
	if since == 0 {
		return // the limit does not care
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	of := rs.of(r)
	*of = known(*of, clock).Answered(since, now)
}
