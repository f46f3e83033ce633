package federation

import (
	"context"

	"github.com/weir-dev/weir/pkg/federation/escrow"
)

// Escrow is what the engine needs of the place where a region keeps what it was
// granted (L2). Several processes of a region may share one.
type Escrow interface {
	// Apply applies c to the escrow of the budget of that id atomically, by the
	// escrow's own clock. The error is a *store.UnavailableError when it could not be
	// reached or did not answer in time.
	Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error)
}
