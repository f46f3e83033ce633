package stores

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// An Observer is called about calls of a store. Its methods may be called concurrently.
type Observer interface {
	// Called says how long a call of the store took and what its error was.
	Called(s policy.Store, took time.Duration, err error)
	// Refilled reports how long it took to learn what a limit is granted, if anything.
	Refilled(limit store.Scope, took time.Duration)
	// Closed says that the store is no longer used.
	Closed(s policy.Store)
}

// observed is a store whose calls are observed.
type observed struct {
	twotier.Store
	of       policy.Store
	observer Observer
}

// Connections returns those of the store; none when it always is where it is.
func (o observed) Connections() (n uint64, lost time.Time) {
	if r, ok := o.Store.(twotier.Reconnecting); ok {
		return r.Connections()
	}
	return 0, time.Time{}
}

// Moved reports whether the store moved, or waits for that; one that is always where it is
// did not.
func (o observed) Moved(ctx context.Context, n uint64) bool {
	r, ok := o.Store.(twotier.Reconnecting)
	return ok && r.Moved(ctx, n)
}

// Apply asks the store.
func (o observed) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	start := time.Now()
	r, err := o.Store.Apply(ctx, key, p, c)
	took := time.Since(start)
	o.observer.Called(o.of, took, err)
	if c.Op == limiter.Take && err == nil {
		o.observer.Refilled(key.Scope, took)
	}
	return r, err
}
