package count

import (
	"sync"
	"time"
)

// Keep is how long counts are kept after their windows ended, and the counts of
// a limit after it was removed.
const Keep = 5 * time.Minute

// A Name names a limit.
type Name struct{ Namespace, Policy, Limit string }

// A Book holds the counts of every limit that this process enforces or enforced
// until recently. All methods may be called concurrently.
type Book struct {
	hash   func(string) string
	memory *usage

	mu     sync.Mutex
	limits map[Name]*Limit
}

// NewBook returns an empty book. hash turns the value of a key into the name it
// has outside this process. m admits the memory for keys; nil admits all.
func NewBook(hash func(string) string, m Memory) *Book {
	return &Book{hash: hash, memory: &usage{of: m}, limits: make(map[Name]*Limit)}
}

// Open returns the counts of the limit and takes over its settings. Counts that
// are there already are kept.
func (b *Book) Open(name Name, s Settings) *Limit {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.limits[name]
	if !ok {
		l = newLimit(name, b.hash, b.memory)
		b.limits[name] = l
	}
	l.configure(s)
	return l
}

// Retain marks every limit but those named as removed at now. Its counts go Keep
// later unless it is opened again.
func (b *Book) Retain(names map[Name]bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, l := range b.limits {
		if !names[name] {
			l.retire(now)
		}
	}
}

// Finish says that nothing is counted any more: all counts are final.
func (b *Book) Finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.limits {
		l.finished.Store(true)
	}
}

// SetHolders says how many processes enforce the policy; see Settings.Holders.
func (b *Book) SetHolders(namespace, policy string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, l := range b.limits {
		if name.Namespace == namespace && name.Policy == policy {
			l.holders.Store(max(1, n))
		}
	}
}

// sweep forgets what is older than Keep.
func (b *Book) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, l := range b.limits {
		if l.sweep(now) {
			delete(b.limits, name)
			l.release()
		}
	}
	b.memory.short.Store(false)
}
