package coordinator

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	// keyBytes is what a key takes of the heap while it is handed over, and its part of
	// what else is there.
	keyBytes = 860
	// usualKeys is how many there is room for when the heap has no limit: as many as in
	// the container of 512Mi that the chart makes.
	usualKeys = 500_000
)

// keysIn returns for how many keys there is room in a heap of that many bytes.
func keysIn(heap int64) int {
	if heap == math.MaxInt64 {
		return usualKeys
	}
	return int(heap / keyBytes)
}

// A room bounds how many values of all limits have counters of their own, since all
// share one memory.
type room struct {
	most    int
	held    held
	taken   int
	takenBy map[string]int // by namespace
}

// held are the counters in memory, among them what the leader before handed over.
type held interface {
	Len() int
	Has(key store.Key) bool
	Counts(key store.Key, now limiter.Instant) bool
}

// take enters that a namespace takes n places more, or, when n is negative, fewer.
func (r *room) take(namespace string, n int) {
	r.taken += n
	if r.takenBy[namespace] += n; r.takenBy[namespace] == 0 {
		delete(r.takenBy, namespace)
	}
}

// has reports whether there is room for a counter. A namespace has room while it takes
// less than what is left. So one alone takes half, and there is always some left for the
// next (dynamic thresholds; Choudhury and Hahne, IEEE/ACM Transactions on Networking, 1998).
// A counter that is held needs none: what it granted counts there only.
func (r *room) has(key store.Key) bool {
	return r.held.Has(key) || r.takenBy[key.Scope.Namespace] < r.most-max(r.taken, r.held.Len())
}
