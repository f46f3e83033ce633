package federation

import (
	"context"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// Coordinator is what the engine needs of the keeper of a budget (L3).
type Coordinator interface {
	// Apply applies c to the budget of that id atomically, by the coordinator's own
	// clock, and blocks until it answered or ctx is done. An error means that nothing
	// was granted as far as the caller can know; it is a *store.UnavailableError when
	// the coordinator could not be reached or did not answer in time. A hub knows the
	// parameters itself and takes of p only the window.
	Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error)

	// Observe returns what is remembered of the budget, for status only. The error is
	// that of Apply.
	Observe(ctx context.Context, id string) (ledger.State, error)
}
