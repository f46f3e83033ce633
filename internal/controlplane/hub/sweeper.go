package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	sweepInterval = time.Minute
	// sweepAfter is how long a record outlives its last window, for a reader that looks for it
	// and for clocks that differ.
	sweepAfter = time.Hour
)

// A Sweeper enters in the records of budgets that this hub does not keep any more that it
// ceased to: before it keeps one again another hub may have. It deletes them an hour after
// their last window, and has the coordinator forget its books of them by then. A record of slices
// stays: members may use them for as long as they are cut off.
type Sweeper struct {
	Journal *Journal
	Budgets Budgets
	Books   Books
	Clock   clock.Clock

	wake chan struct{}
}

// Books are what the coordinator remembers of budgets. Sweep forgets those of budgets that are not
// kept, once their last windows ended before the instant.
type Books interface {
	Sweep(kept func(id string) bool, before limiter.Instant)
}

// NewSweeper returns a Sweeper that does nothing until Start.
func NewSweeper(j *Journal, b Budgets, books Books) *Sweeper {
	return &Sweeper{Journal: j, Budgets: b, Books: books, Clock: clock.RealClock{}, wake: make(chan struct{}, 1)}
}

// Refresh makes Start look at once whether a budget is not kept any more. It does not
// block.
func (s *Sweeper) Refresh() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// NeedLeaderElection reports that only the leader sweeps.
func (*Sweeper) NeedLeaderElection() bool { return true }

// Start sweeps at once and every minute until ctx is done, and then returns nil.
func (s *Sweeper) Start(ctx context.Context) error {
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).WithName("hub").Error(err, "Records of budgets that are not kept any more stay until the next attempt")
		}
		timer := s.Clock.NewTimer(sweepInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-s.wake:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// sweep changes each record only in the version that it has read, so that one that a
// leader takes up again at that moment stays.
func (s *Sweeper) sweep(ctx context.Context) error {
	found, err := s.Journal.client.List(ctx, metav1.ListOptions{LabelSelector: RecordLabel + "=" + RecordValue})
	if err != nil {
		return fmt.Errorf("list the records: %w", err)
	}
	before := limiter.Instant(s.Clock.Now().Add(-sweepAfter).UnixMicro())
	s.Books.Sweep(func(id string) bool { _, kept := s.Budgets.Budget(id); return kept }, before)
	var errs []error
	for i := range found.Items {
		record := &found.Items[i]
		id := record.Annotations[IDAnnotation]
		r, err := decodeRecord(record, id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch _, kept := s.Budgets.Budget(id); {
		case kept:
		case len(r.Slices) == 0 && r.Ends() <= before:
			errs = append(errs, s.remove(ctx, record))
		case r.Kept():
			_, err := s.Journal.Save(ctx, id, r.Ceased(), record.ResourceVersion)
			if _, changed := errors.AsType[*kubernetes.ConflictError](err); !changed {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (s *Sweeper) remove(ctx context.Context, record *corev1.ConfigMap) error {
	err := s.Journal.client.Delete(ctx, record.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &record.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete ConfigMap %s: %w", record.Name, err)
	}
	return nil
}
