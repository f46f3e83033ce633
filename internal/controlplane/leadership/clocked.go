package leadership

import (
	"context"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/weir-dev/weir/pkg/limiter"
)

// ClockAnnotation is on the Lease of leader election: what the leader's clock showed when
// it last renewed, in microseconds since the Unix epoch.
const ClockAnnotation = "weir.dev/store-clock"

// clocked are the Leases as the lock reads and writes them: with its clock.
type clocked struct {
	coordinationv1client.LeasesGetter
	lock *Lock
}

// Leases implements LeasesGetter.
func (c clocked) Leases(namespace string) coordinationv1client.LeaseInterface {
	return clockedLeases{LeaseInterface: c.LeasesGetter.Leases(namespace), lock: c.lock}
}

type clockedLeases struct {
	coordinationv1client.LeaseInterface
	lock *Lock
}

// Get reads a Lease, and what it says of the past. While another process holds it, Get
// waits: see await.
func (c clockedLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	for {
		lease, err := c.LeaseInterface.Get(ctx, name, o)
		if err != nil {
			return nil, err
		}
		c.lock.look(lease)
		if c.lock.renewed.Load() != nil || !c.lock.heldByAnother(lease) {
			c.lock.free()
			return lease, nil
		}
		left := c.lock.see(lease)
		if left <= 0 {
			c.lock.free()
			lease.Spec.HolderIdentity = new("")
			return lease, nil
		}
		if err := c.await(ctx, lease, left); err != nil {
			return nil, err
		}
	}
}

// Create writes a Lease that does not exist yet.
func (c clockedLeases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	c.lock.annotate(ctx, lease)
	return c.LeaseInterface.Create(ctx, lease, o)
}

// Update writes a Lease.
func (c clockedLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	c.lock.date(lease)
	c.lock.annotate(ctx, lease)
	return c.LeaseInterface.Update(ctx, lease, o)
}

// leased is the key of the context of a write for where it says what it leased.
type leased struct{}

// annotate has the Lease carry what the clock shows now: after the write that it is part
// of was begun, so that what is leased reaches as far as the write counts.
func (l *Lock) annotate(ctx context.Context, lease *coordinationv1.Lease) {
	clock := l.clock.Load()
	if clock == nil {
		return
	}
	now := clock.Now()
	if at, ok := ctx.Value(leased{}).(*limiter.Instant); ok {
		*at = now
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[ClockAnnotation] = strconv.FormatInt(int64(now), 10)
}

// look notes what a Lease says of others.
func (l *Lock) look(lease *coordinationv1.Lease) {
	if l.isOwn(lease) {
		return
	}
	var note Note
	if at, err := strconv.ParseInt(lease.Annotations[ClockAnnotation], 10, 64); err == nil && at > 0 && limiter.Instant(at) <= limiter.MaxInstant {
		note.Clock = limiter.Instant(at)
	}
	if renewed := lease.Spec.RenewTime; !renewed.IsZero() {
		note.Wall = limiter.Instant(renewed.UnixMicro())
	}
	holder := lease.Spec.HolderIdentity
	note.Held = holder != nil && *holder != ""
	l.past.Store(new(note.Past(micros(l.hold))))
}

// isOwn reports whether this process wrote the Lease.
func (l *Lock) isOwn(lease *coordinationv1.Lease) bool {
	holder := lease.Spec.HolderIdentity
	return l.clock.Load() != nil && holder != nil && *holder == l.Identity()
}
