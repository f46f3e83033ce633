package coordinator

import (
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// counters bounds how many counters each limit has in the store, so that no
// tenant can fill the memory that all share.
type counters struct {
	mu      sync.Mutex
	byScope map[store.Scope]*hashes
}

// hashes are the counters of one limit that may be alive. A counter is dropped
// when its longest window has ended twice over, so those asked for during two
// such spans are all there can be.
type hashes struct {
	span        limiter.Micros
	turn        limiter.Instant // when now becomes before
	now, before map[string]struct{}
}

func newCounters() *counters { return &counters{byScope: map[store.Scope]*hashes{}} }

// admit reports whether the limit may have the counter: it has it already, or
// fewer than most.
func (c *counters) admit(l *published, hash string, now limiter.Instant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.byScope[l.scope]
	if h == nil {
		h = &hashes{}
		c.byScope[l.scope] = h
	}
	h.span = max(h.span, 2*l.longest) // an edit may leave a longer window in force
	h.advance(now)
	if _, known := h.now[hash]; known {
		return true
	}
	if _, known := h.before[hash]; !known && len(h.now)+len(h.before) >= l.most {
		return false
	}
	delete(h.before, hash)
	h.now[hash] = struct{}{}
	return true
}

func (h *hashes) advance(now limiter.Instant) {
	if now < h.turn {
		return
	}
	h.before = h.now
	if now >= h.turn.Add(h.span) {
		h.before = nil
	}
	h.now, h.turn = map[string]struct{}{}, now.Add(h.span)
}

// sweep forgets limits whose counters are all gone.
func (c *counters) sweep(now limiter.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for scope, h := range c.byScope {
		if now >= h.turn.Add(h.span) {
			delete(c.byScope, scope)
		}
	}
}

// longest returns the length of the longest window.
func longest(p limiter.Params) limiter.Micros {
	var length limiter.Micros
	for _, r := range p.Rates {
		length = max(length, r.Window)
	}
	return length
}
