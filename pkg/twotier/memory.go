package twotier

import "sync"

// Memory admits memory for keys. Its methods may be called concurrently, and do not block.
type Memory interface {
	// Take takes n bytes, or returns false when there are too few left. For a counter that
	// values share some are left when there are none for others.
	Take(n int64, shared bool) bool
	// Give gives back n bytes that were taken.
	Give(n int64)
}

// These are bytes that a key takes.
const (
	keyBytes   = 208       // with its lease and its place in the index, while that grows; beside its name
	extraBytes = 576 + 512 // what few keys have, with what was admitted without the store
)

// usage is what the keys of a limiter have taken.
type usage struct {
	of Memory // nil admits all

	mu     sync.Mutex
	taken  int64
	closed bool // nothing is taken any more
}

func (u *usage) take(n int64, shared bool) bool {
	if u.of == nil {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || !u.of.Take(n, shared) {
		return false
	}
	u.taken += n
	return true
}

func (u *usage) give(n int64) {
	if u.of == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.taken -= n
		u.of.Give(n)
	}
}

// close gives all bacc.
func (u *usage) close() {
	if u.of == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.closed = true
		u.of.Give(u.taken)
	}
}

// memory returns what the keys of the limiter have taken.
func (c *accountCell) memory() *usage { return &c.limiter().keys.memory }

// reserve takes the memory for what few keys have, unless the key has taken it, and reports
// whether it has; mu is held. Few keys are in no table, or are shared: these need none.
func (c *accountCell) reserve() bool {
	switch {
	case c.reserved, c.isSole():
		return true
	case c.evicted:
		return false
	}
	c.reserved = c.memory().take(extraBytes, false)
	return c.reserved
}

// release gives back what reserve took; mu is held.
func (c *accountCell) release() {
	if c.reserved {
		c.memory().give(extraBytes)
		c.reserved = false
	}
}
