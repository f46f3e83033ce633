package coordinator

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/births"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// factsOf returns what a store says of itself.
func (t *term) factsOf(ctx context.Context, of policy.Store) (store.Facts, error) {
	if of.Type == policy.ControllerStore {
		return t.store.Facts(), nil
	}
	return t.Facts(ctx, of)
}

// sweepRecords sweeps until ctx is done.
func (t *term) sweepRecords(ctx context.Context) {
	if t.births == nil {
		return
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		there, err := t.Limits(ctx)
		if err == nil {
			err = t.births.Sweep(ctx, there)
		}
		if err == nil && t.journals != nil {
			err = t.journals.Sweep(ctx, there)
		}
		if err != nil && ctx.Err() == nil {
			t.log.Error(err, "limits that are gone are still known; trying again")
		}
	}, births.SweepInterval)
}

// openCounters has the store keep the durable counters that a config names, so that what is
// known of them is before anybody asks.
func (t *term) openCounters(c *config) {
	if t.journals == nil || c.opened.Swap(true) {
		return
	}
	for _, l := range c.limits {
		if !l.here || l.budget != nil || !l.params.Retention.Durable {
			continue
		}
		fewest := l.span.Limit
		for _, own := range l.own {
			fewest = min(fewest, own.Longest().Limit)
		}
		t.store.Open(l.scope, l.params, fewest)
	}
}
