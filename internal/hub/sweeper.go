package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	sweepInterval = 10 * time.Minute
	// sweepAfter is how long a record outlives its last window, for whoever looks for it
	// and for clocks that differ.
	sweepAfter = time.Hour
)

// A Sweeper deletes the records of budgets that this hub does not keep any more, an hour
// after their last window. A record that tells of slices stays: members may use them
// for as long as they are cut off.
type Sweeper struct {
	Journal *Journal
	Budgets Budgets
	Clock   clock.Clock // nil: the real one
}

// NeedLeaderElection reports that only the leader sweeps.
func (*Sweeper) NeedLeaderElection() bool { return true }

// Start sweeps every ten minutes until ctx is done, and then returns nil.
func (s *Sweeper) Start(ctx context.Context) error {
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	for {
		timer := s.Clock.NewTimer(sweepInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).WithName("hub").Error(err, "Records of budgets that are not kept any more stay until the next attempt")
		}
	}
}

// sweep deletes each record only in the version that it has read, so that one that a
// leader takes up again at that moment stays.
func (s *Sweeper) sweep(ctx context.Context) error {
	found, err := s.Journal.client.List(ctx, metav1.ListOptions{LabelSelector: RecordLabel + "=" + RecordValue})
	if err != nil {
		return fmt.Errorf("list the records: %w", err)
	}
	before := limiter.Instant(s.Clock.Now().Add(-sweepAfter).UnixMicro())
	var errs []error
	for i := range found.Items {
		record := &found.Items[i]
		id := record.Annotations[IDAnnotation]
		r, err := decodeRecord(record, id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, kept := s.Budgets.Budget(id); kept || len(r.Slices) > 0 || r.Ends() > before {
			continue
		}
		err = s.Journal.client.Delete(ctx, record.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete ConfigMap %s: %w", record.Name, err))
		}
	}
	return errors.Join(errs...)
}
