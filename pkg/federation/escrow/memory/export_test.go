package memory

import "github.com/weir-dev/weir/pkg/limiter"

// Len returns the number of budgets held.
func Len(e *Escrow) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.budgets)
}

// Since returns when the memory began.
func Since(e *Escrow) limiter.Instant { return e.since }
