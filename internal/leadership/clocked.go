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

// A Past is what a Lease says of the leaders before.
type Past struct {
	// Renewed is what the last one's clock showed when it last renewed: until then it
	// served. It is 0 when the Lease does not say.
	Renewed limiter.Instant
	// Served is the newest instant that any of them may have served.
	Served limiter.Instant
	// Overlap is how long one may go on serving of which this process knows nothing,
	// because there was no Lease; otherwise 0.
	Overlap limiter.Micros
}

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

// Get reads a Lease, and what it says of the past.
func (c clockedLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	lease, err := c.LeaseInterface.Get(ctx, name, o)
	if err == nil {
		c.lock.look(lease)
	}
	return lease, err
}

// Create writes a Lease that does not exist yet.
func (c clockedLeases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	c.lock.annotate(ctx, lease)
	return c.LeaseInterface.Create(ctx, lease, o)
}

// Update writes a Lease.
func (c clockedLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
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

// look notes what a Lease says of others. A leader of a version that leases no clock
// served by its wall clock, of which the time of its last renewal is known; it may have
// left the annotation of one before. One that released the lock served nothing
// afterwards.
func (l *Lock) look(lease *coordinationv1.Lease) {
	if l.isOwn(lease) {
		return
	}
	var past Past
	if at, err := strconv.ParseInt(lease.Annotations[ClockAnnotation], 10, 64); err == nil && at > 0 && limiter.Instant(at) <= limiter.MaxInstant {
		past.Renewed, past.Served = limiter.Instant(at), limiter.Instant(at)
	}
	if renewed := lease.Spec.RenewTime; !renewed.IsZero() {
		past.Served = max(past.Served, limiter.Instant(renewed.UnixMicro()))
	}
	if holder := lease.Spec.HolderIdentity; past.Served > 0 && holder != nil && *holder != "" {
		past.Served = past.Served.Add(micros(l.hold))
	}
	l.past.Store(&past)
}

// isOwn reports whether this process wrote the Lease.
func (l *Lock) isOwn(lease *coordinationv1.Lease) bool {
	holder := lease.Spec.HolderIdentity
	return l.clock.Load() != nil && holder != nil && *holder == l.Identity()
}
