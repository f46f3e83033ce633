package backend

import (
	"sync"
	"time"
)

// bucket is what instants are rounded to, and keep how many buckets are remembered.
const (
	bucket = 100 * time.Millisecond
	keep   = int64(30 * time.Minute / bucket)
)

// A gauge is a number that goes up and down, and its peaks.
type gauge struct {
	mu     sync.Mutex
	value  int64
	newest int64           // bucket of the last change
	peaks  map[int64]int64 // by bucket in which the value changed
}

func (g *gauge) add(at time.Time, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peaks == nil {
		g.peaks = map[int64]int64{}
	}
	now := max(at.UnixNano()/int64(bucket), g.newest)
	if now != g.newest {
		for b := max(g.newest+1, now-keep); g.newest > 0 && b <= now; b++ {
			g.peaks[b] = g.value // what was left of the bucket before
			delete(g.peaks, b-keep)
		}
		g.newest = now
	}
	g.value += n
	g.peaks[now] = max(g.peaks[now], g.value)
}

func (g *gauge) now() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value
}

func (g *gauge) peak(from, to time.Time) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	var most int64
	for b := from.UnixNano() / int64(bucket); b < to.UnixNano()/int64(bucket); b++ {
		if b > g.newest {
			most = max(most, g.value)
			break
		}
		most = max(most, g.peaks[b])
	}
	return most
}
