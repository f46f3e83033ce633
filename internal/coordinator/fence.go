package coordinator

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A Fence is the lock of leader election that also tells how long it is surely
// held: nobody else takes it before its duration has passed since the request
// that renewed it was sent. A leader that was suspended for longer wakes up
// outside its fence, whatever it still believes.
type Fence struct {
	resourcelock.Interface
	lasts time.Duration

	mu    sync.Mutex
	until time.Time
}

// NewFence wraps lock. lasts has to be shorter than the lease duration of the
// election by more than clocks may differ in rate.
func NewFence(lock resourcelock.Interface, lasts time.Duration) *Fence {
	return &Fence{Interface: lock, lasts: lasts}
}

// Create implements resourcelock.Interface.
func (f *Fence) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return f.renewed(sent, r, f.Interface.Create(ctx, r))
}

// Update implements resourcelock.Interface. It is also how the lock is released.
func (f *Fence) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return f.renewed(sent, r, f.Interface.Update(ctx, r))
}

func (f *Fence) renewed(sent time.Time, r resourcelock.LeaderElectionRecord, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil: // until then it may still be held
	case r.HolderIdentity == f.Identity():
		f.until = sent.Add(f.lasts)
	default:
		f.until = time.Time{}
	}
	return err
}

// Held implements Leadership. The monotonic clock may stop while a machine is
// suspended and the wall clock may step, so both have to agree.
func (f *Fence) Held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	return now.Before(f.until) && now.Round(0).Before(f.until.Round(0))
}
