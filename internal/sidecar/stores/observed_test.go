package stores

import (
	"context"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// answers is a store that answers with an error or none.
type answers struct{ err error }

func (a answers) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, a.err
}

// watcher remembers the limits that were refilled.
type watcher struct {
	Observer
	refilled []store.Scope
}

func (*watcher) Called(policy.Store, time.Duration, error) {}

func (w *watcher) Refilled(limit store.Scope, _ time.Duration) {
	w.refilled = append(w.refilled, limit)
}

// TestOnlyAnsweredTakesRefill: units that come back, and calls that failed, brought none.
func TestOnlyAnsweredTakesRefill(t *testing.T) {
	limit := store.Scope{Cluster: "c", Namespace: "shop", Policy: "checkout", Limit: "all"}
	for name, tc := range map[string]struct {
		op   limiter.Op
		err  error
		want int
	}{
		"a take":            {limiter.Take, nil, 1},
		"a take that fails": {limiter.Take, context.DeadlineExceeded, 0},
		"a return":          {limiter.Return, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var seen watcher
			o := observed{Store: answers{tc.err}, observer: &seen}
			_, _ = o.Apply(t.Context(), store.Key{Scope: limit}, limiter.Params{}, limiter.Command{Op: tc.op})
			if len(seen.refilled) != tc.want || tc.want == 1 && seen.refilled[0] != limit {
				t.Errorf("refilled %v", seen.refilled)
			}
		})
	}
}
