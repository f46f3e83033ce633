package memory

// Len returns the number of pools held.
func (c *Coordinator) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pools)
}
