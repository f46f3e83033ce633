package leadership

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A Lock is the lock of leader election, which remembers when it was last
// renewed. Its methods are safe for concurrent use.
type Lock struct {
	resourcelock.Interface
	hold time.Duration
	now  func() time.Duration // since boot, suspended time included

	// renewed is now, in nanoseconds, before the last write that made this process
	// the holder was sent; 0 while it is not the holder.
	renewed atomic.Int64

	// predecessor is until when another may have held the lock, in microseconds of
	// its wall clock; 0 when none was seen.
	predecessor atomic.Int64
}

// New returns the lock in the Lease namespace/name for a process called
// identity. A renewal counts for renewDeadline, from before it was sent; others
// wait for longer than that, from when they saw it. The lock talks to the API
// server through a client of its own, whose rate nothing else uses up; config is
// left as it is.
func New(config *rest.Config, namespace, name, identity string, renewDeadline time.Duration) (*Lock, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.RateLimiter = nil
	// One request that hangs must not cost the lease.
	config.Timeout = max(time.Second, renewDeadline/2)
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for leader election: %w", err)
	}
	return newLock(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, renewDeadline, sinceBoot), nil
}

func newLock(lock resourcelock.Interface, hold time.Duration, now func() time.Duration) *Lock {
	return &Lock{Interface: lock, hold: hold, now: now}
}

// Get reads the lock.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil || record.HolderIdentity == l.Identity() || record.RenewTime.IsZero() {
		return record, raw, err
	}
	until := record.RenewTime.Time
	if record.HolderIdentity != "" { // not released then
		until = until.Add(l.hold)
	}
	l.predecessor.Store(until.UnixMicro())
	return record, raw, nil
}

// Predecessor returns the instant, on its own wall clock, until which the holder
// before this process may have held the lock; zero when none was seen.
func (l *Lock) Predecessor() time.Time {
	until := l.predecessor.Load()
	if until == 0 {
		return time.Time{}
	}
	return time.UnixMicro(until)
}

// Create takes the lock for the first time.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update takes, renews or releases the lock.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *Lock) write(
	ctx context.Context,
	record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	sent := l.now()
	if record.HolderIdentity != l.Identity() {
		// Released whether or not the answer arrives.
		l.renewed.Store(0)
		return write(ctx, record)
	}
	if err := write(ctx, record); err != nil {
		return err
	}
	l.renewed.Store(int64(sent))
	return nil
}

// Held reports whether no other process can hold the lock at this moment.
func (l *Lock) Held() bool {
	renewed := l.renewed.Load()
	return renewed != 0 && l.now()-time.Duration(renewed) < l.hold
}
