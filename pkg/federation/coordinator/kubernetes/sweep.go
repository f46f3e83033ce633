package kubernetes

import "github.com/weir-dev/weir/pkg/limiter"

// Sweep forgets the books of budgets that are not kept any more, once their last windows ended
// before the instant: choose one that all clocks have passed. A budget that is created again in
// such a window finds its book. One that is created later finds its record, or its birth, as
// another process would: nothing that this memory granted is granted again.
func (c *Coordinator) Sweep(kept func(id string) bool, before limiter.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, b := range c.budgets {
		if !kept(id) && b.over(before) {
			delete(c.budgets, id)
		}
	}
}

// over reports whether nothing is known of a window that ended later, nor will be by a call that is
// under way.
func (b *budget) over(before limiter.Instant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.memory
	switch {
	case b.busy != nil:
		return false
	case m == nil:
		return true // what there was is in the record
	}
	open := limiter.Instant((m.state.Index + 1) * int64(m.state.Window))
	return max(open, m.saved.Ends()) <= before
}
