package count

import "sync/atomic"

// Memory admits memory for keys that are counted apart. Its methods may be called concurrently,
// and do not block.
type Memory interface {
	// Take takes n bytes, or returns false when there are too few left.
	Take(n int64) bool
	// Give gives back n bytes that were taken.
	Give(n int64)
}

// tallyBytes is what a key that is counted apart takes in a row or a sum, while that grows and beside its
// name.
const tallyBytes = 64

// usage is what the counts of all limits take.
type usage struct {
	of Memory // nil admits all
	// short says that some was not to be had since the book was last swept.
	short atomic.Bool
}

// take takes what a key with the value needs, and returns how much that is.
func (u *usage) take(value string) (taken int64, ok bool) {
	n := tallyBytes + int64(len(value))
	if u.of == nil || u.of.Take(n) {
		return n, true
	}
	u.short.Store(true)
	return 0, false
}

func (u *usage) give(n int64) {
	if u.of != nil && n > 0 {
		u.of.Give(n)
	}
}

// release gives back what the limit takes, which is gone.
func (l *Limit) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rows {
		r.close(l.memory)
	}
	l.rows = nil
	l.summing.Lock()
	defer l.summing.Unlock()
	for w := range l.sums {
		l.forgetSum(w)
	}
}

// forgetSum forgets a sum; summing is held.
func (l *Limit) forgetSum(w window) {
	l.memory.give(l.sums[w].taken)
	delete(l.sums, w)
}
