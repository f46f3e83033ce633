package concurrency

import (
	"context"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// Coordinator is what the engine needs of the divider of a pool.
type Coordinator interface {
	// Apply applies c to the pool atomically, by the coordinator's own clock, and
	// blocks until it answered or ctx is done. An error means that no share was
	// granted; it is a *store.UnavailableError when the coordinator could not be
	// reached or did not answer in time.
	Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error)
}
