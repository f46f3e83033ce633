package leadership

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// A Lock is the lock of leader election. It remembers when it was last renewed, and leases
// the clock by which the leader serves: each write carries the clock's time, and no instant
// is served that is more than a hold after it. So the next leader knows where to go on,
// whatever its own clock shows. Its methods are safe for concurrent use.
type Lock struct {
	resourcelock.Interface
	hold time.Duration
	boot func() time.Duration // since boot, suspended time included
	wall func() time.Time

	// renewed is the last write that made this process the holder; nil while it is not
	// the holder.
	renewed atomic.Pointer[Renewal]
	// clock is nil before this process has tried to take the lock.
	clock atomic.Pointer[memory.Clock]
	past  atomic.Pointer[Past]

	seen     atomic.Pointer[sighting]         // of a Lease that another process held
	returned atomic.Pointer[metav1.MicroTime] // when Get last returned, by wall
}

// Config is what a Lock works with.
type Config struct {
	Leases          coordinationv1client.LeasesGetter
	Namespace, Name string // of the Lease
	Identity        string // of the process, which no other has
	// Hold is how long a renewal counts, from before it was sent. Others wait for
	// longer than that, from when they saw it.
	Hold time.Duration
	Boot func() time.Duration // since the machine started; nil: its clock
	Wall func() time.Time     // nil: time.Now
}

// errLapsed is why a leader does not lead on.
var errLapsed = errors.New("the Lease is gone, and another process may have led since it was renewed")

// Leases returns a client for Config that is the lock's own: nothing else uses up its
// rate, and one request that hangs does not cost a lease that holds that long. It leaves
// config as it is.
func Leases(config *rest.Config, hold time.Duration) (coordinationv1client.LeasesGetter, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.RateLimiter = nil
	config.Timeout = max(time.Second, hold/2)
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for leader election: %w", err)
	}
	return leases, nil
}

// New returns a lock that this process does not hold.
func New(c Config) *Lock {
	l := &Lock{hold: c.Hold, boot: c.Boot, wall: c.Wall}
	if l.boot == nil {
		l.boot = sinceBoot
	}
	if l.wall == nil {
		l.wall = time.Now
	}
	l.past.Store(&Past{Overlap: micros(c.Hold)})
	l.Interface = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
		Client:     clocked{LeasesGetter: c.Leases, lock: l},
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity},
	}
	return l
}

// Create takes a lock that has no Lease yet: for the first time, or after it was
// deleted. Then another process may hold it still, which renewed since this one looked.
// A leader that did not renew in time fails: others may have led and served meanwhile, of
// which nothing is left to see.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.renewed.Load() == nil {
		past := l.Past().WithoutLease(micros(l.hold))
		l.past.Store(&past)
	} else if !l.Held() {
		return errLapsed
	}
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
	r := Renewal{Sent: l.boot()}
	if record.HolderIdentity != l.Identity() {
		// Released whether or not the answer arrives: before the clock is read, so that
		// nothing is served after what it shows.
		l.renewed.Store(nil)
		return write(ctx, record)
	}
	if l.renewed.Load() == nil { // nothing was served by another clock
		l.clock.Store(memory.NewClock(l.wall(), l.past.Load().Served))
	}
	if err := write(context.WithValue(ctx, leased{}, &r.Clock), record); err != nil {
		return err
	}
	l.renewed.Store(&r)
	return nil
}

// Held reports whether no other process can hold the lock at this moment.
func (l *Lock) Held() bool {
	r := l.renewed.Load()
	return r != nil && r.Holds(l.boot(), l.hold)
}

// Covers reports whether the lock is held, and no leader after this one serves the
// instant, which is one of Clock: it begins after all that is leased.
func (l *Lock) Covers(at limiter.Instant) bool {
	r := l.renewed.Load()
	return r != nil && r.Covers(at, l.boot(), l.hold)
}

// Clock returns the clock by which this process serves while it leads. It starts after
// all that a leader before may have served. It is nil before the lock was held.
func (l *Lock) Clock() *memory.Clock { return l.clock.Load() }

// Past returns what was known of leaders before when this process last looked.
func (l *Lock) Past() Past { return *l.past.Load() }
