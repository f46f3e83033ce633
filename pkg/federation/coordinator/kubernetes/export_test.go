package kubernetes

import "time"

// Settle waits until no call of the journal is under way.
func (c *Coordinator) Settle() {
	c.mu.Lock()
	budgets := make([]*budget, 0, len(c.budgets))
	for _, b := range c.budgets {
		budgets = append(budgets, b)
	}
	c.mu.Unlock()
	for _, b := range budgets {
		b.mu.Lock()
		busy := b.busy
		b.mu.Unlock()
		if busy != nil {
			<-busy
		}
	}
}

// Forget makes the coordinator load every record again.
func (c *Coordinator) Forget() {
	c.Settle()
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.budgets)
}

// Resume lets the next command try the journal at once after a failure.
func (c *Coordinator) Resume() {
	c.Settle()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.budgets {
		b.mu.Lock()
		b.retry = time.Time{}
		b.mu.Unlock()
	}
}

// Len returns of how many budgets there is a book.
func (c *Coordinator) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.budgets)
}
