package jwt

import (
	"crypto/sha256"
	"sync"
	"time"
)

// Bounds of what a Verifier remembers.
const (
	maxTokens = 4096
	maxBytes  = 1 << 20 // of tokens as they were sent
)

// A digest names a token. Nobody can make another token of the same digest.
type digest [sha256.Size]byte

// An acceptance is what is known of a token that was accepted.
type acceptance struct {
	claims      map[string]any
	from, until time.Time
	size        int // of the token
}

func (a *acceptance) validAt(now time.Time) bool { return !now.Before(a.from) && now.Before(a.until) }

// A cache remembers tokens that were accepted. Only issuers make these, so strangers can
// neither fill it nor push others out.
type cache struct {
	mu     sync.RWMutex
	tokens map[digest]acceptance
	bytes  int
}

func newCache() cache { return cache{tokens: make(map[digest]acceptance)} }

func (c *cache) get(name digest) (acceptance, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, ok := c.tokens[name]
	return a, ok
}

// put makes room by dropping tokens as the map yields them, which is in no order.
func (c *cache) put(name digest, a acceptance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.tokens[name]; known {
		return
	}
	for other, dropped := range c.tokens {
		if len(c.tokens) < maxTokens && c.bytes+a.size <= maxBytes {
			break
		}
		delete(c.tokens, other)
		c.bytes -= dropped.size
	}
	c.tokens[name] = a
	c.bytes += a.size
}
