package leadership

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// watchPause is the least time between the begins of two watches.
const watchPause = time.Second

// A sighting is when this process first saw a version of the Lease.
type sighting struct {
	version string
	at      time.Time
}

// heldByAnother reports whether the Lease names another process as its holder.
func (l *Lock) heldByAnother(lease *coordinationv1.Lease) bool {
	holder := lease.Spec.HolderIdentity
	return holder != nil && *holder != "" && *holder != l.Identity()
}

// see notes a version of a Lease that another process holds, and returns how long this one
// has to wait before it may take it: the Lease's duration since it saw the version first.
// That is longer than a renewal counts, and the write that takes it fails when there was
// another one meanwhile.
func (l *Lock) see(lease *coordinationv1.Lease) (left time.Duration) {
	seen := l.seen.Load()
	if seen == nil || seen.version != lease.ResourceVersion {
		seen = &sighting{version: lease.ResourceVersion, at: time.Now()}
		l.seen.Store(seen)
	}
	var duration time.Duration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		duration = time.Duration(*seconds) * time.Second
	}
	return duration - time.Since(seen.at)
}

// await watches a Lease that another process holds, for at most as long as left. It returns
// once the Lease may have been released or deleted. So a standby follows at once a leader
// that stops in order, and asks the API server less often than one that polls. Without the
// right to watch it returns after a pause.
func (c clockedLeases) await(ctx context.Context, lease *coordinationv1.Lease, left time.Duration) error {
	pause := time.NewTimer(min(left, watchPause))
	defer pause.Stop()
	watched, stop := context.WithTimeout(ctx, left)
	defer stop()
	events, err := c.Watch(watched, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, lease.Name).String(),
		ResourceVersion: lease.ResourceVersion,
	})
	if err == nil {
		defer events.Stop()
		if c.released(watched, events) {
			return nil
		}
	}
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// released reads renewals until something else happens to the Lease, and reports whether
// that did before the watch ended.
func (c clockedLeases) released(ctx context.Context, events watch.Interface) bool {
	for {
		select {
		case e := <-events.ResultChan():
			lease, ok := e.Object.(*coordinationv1.Lease)
			if !ok {
				return false // the watch ended
			}
			if e.Type == watch.Deleted || !c.lock.heldByAnother(lease) {
				return true
			}
			c.lock.look(lease)
			c.lock.see(lease)
		case <-ctx.Done():
			return false
		}
	}
}

// free notes that Get returns.
func (l *Lock) free() { l.returned.Store(new(metav1.NewMicroTime(l.wall()))) }

// date has a Lease not show as its time one before Get returned: leader election reads the
// clock before it calls that.
func (l *Lock) date(lease *coordinationv1.Lease) {
	since := l.returned.Load()
	for _, at := range []**metav1.MicroTime{&lease.Spec.AcquireTime, &lease.Spec.RenewTime} {
		if since != nil && (*at).Before(since) {
			*at = since
		}
	}
}
