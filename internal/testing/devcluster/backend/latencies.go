package backend

import (
	"math"
	"slices"
	"sync"
	"time"
)

// latencies are how long requests took, by when they arrived.
type latencies struct {
	mu  sync.Mutex
	all map[int64][]time.Duration // by bucket
}

func (l *latencies) add(arrived time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[int64][]time.Duration{}
	}
	b := arrived.UnixNano() / int64(bucket)
	l.all[b] = append(l.all[b], took)
	delete(l.all, b-keep)
}

func (l *latencies) of(from, to time.Time, part float64) (n int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []time.Duration
	for b := from.UnixNano() / int64(bucket); b < to.UnixNano()/int64(bucket); b++ {
		all = append(all, l.all[b]...)
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return len(all), all[min(len(all)-1, int(math.Ceil(part*float64(len(all))))-1)]
}
