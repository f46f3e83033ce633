package twotier

import (
	"context"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Store is what the engine needs of L2.
type Store interface {
	// Apply runs c for one counter atomically, by the store's own clock, and
	// blocks until the store answered or ctx is done. Command.Memory is the
	// store's to set. A refusal is a Result, not an error. An error means that no
	// decision was reached; it is a *store.UnavailableError when the store could
	// not be reached or did not answer in time.
	Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
}
