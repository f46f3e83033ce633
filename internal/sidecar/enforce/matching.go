package enforce

import (
	"sync"
	"sync/atomic"
	"time"
)

// A matching is whether a limit matched a request since its policy has its generation. All
// methods may be called concurrently.
type matching struct {
	generation int64
	matched    atomic.Bool
	missed     atomic.Uint64 // requests that were asked about and not matched, while none was

	mu          sync.Mutex
	seen        uint64    // missed, as look last found it
	first, last time.Time // when look first and last found that it had grown
}

// matchingOf returns that of the limit, which goes on from the one that old has of the same
// generation.
func matchingOf(l, old *limit) *matching {
	if old != nil && old.matching.generation == l.Policy.Generation {
		return old.matching
	}
	return &matching{generation: l.Policy.Generation}
}

// match notes that a request was matched, or the limit asked by name.
func (m *matching) match() {
	if !m.matched.Load() { // it is written once, and shared between processors before and after
		m.matched.Store(true)
	}
}

// miss notes that a request was not matched.
func (m *matching) miss() {
	if !m.matched.Load() {
		m.missed.Add(1)
	}
}

// look returns whether a request was matched and, if not, for how long others have come, as far
// as the calls at their instants show.
func (m *matching) look(now time.Time) (matched bool, unmatched time.Duration) {
	if m.matched.Load() {
		return true, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if missed := m.missed.Load(); missed > m.seen {
		m.seen, m.last = missed, now
		if m.first.IsZero() {
			m.first = now
		}
	}
	return false, m.last.Sub(m.first)
}
