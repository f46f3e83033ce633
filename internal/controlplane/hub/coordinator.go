package hub

import (
	"context"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// Coordinator is what the server needs of the coordinator of the budgets: a
// federation.Coordinator, which a Client is as well.
type Coordinator interface {
	Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error)
	Observe(ctx context.Context, id string) (ledger.State, error)
}
