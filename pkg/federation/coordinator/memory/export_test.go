package memory

import "github.com/weir-dev/weir/pkg/federation/ledger"

// Memory returns what the coordinator knows of its past.
func (c *Coordinator) Memory() ledger.Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory
}

// Len returns the number of budgets held.
func (c *Coordinator) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.budgets)
}
