package hub

import "context"

// A Sweeper deletes the records of budgets that this hub does not keep any more, an
// hour after their last window.
type Sweeper struct {
	Journal *Journal
	Budgets Budgets
}

// NeedLeaderElection reports that only the leader sweeps.
func (*Sweeper) NeedLeaderElection() bool { return true }

// Start sweeps now and then until ctx is done, and then returns nil.
func (s *Sweeper) Start(ctx context.Context) error { panic("hub: not built") }
