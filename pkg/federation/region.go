package federation

import (
	"context"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Region uses one member's part of one budget in one process. Its methods may be
// called concurrently. It has to be closed.
type Region struct{}

// New returns a region that asks c for units and keeps them in e; e is nil when the
// process shares them with no other. The configuration has to be valid.
func New(cfg Config, c Coordinator, e Escrow) *Region {
	panic("federation: not built")
}

// Apply asks for units, gives them back or looks how many there are, for the holders
// of the region. p is FixedWindow with one rate, that of the budget; its Fairness splits what the
// region gets over tenants.
//
// Windows in results carry the coordinator's number, and Now is an estimate of its
// clock that lies within. Apply blocks until there are units, for at most
// Config.Patience. That the coordinator is away is a refusal, limiter.Exhausted with
// RetryAfter; the error is a *store.UnavailableError when nothing was ever known, ctx is
// done, or the region is closed.
func (r *Region) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	panic("federation: not built")
}

// Report tells the coordinator what the member counted in windows that are over, at
// most ledger.MaxClosed. The error is that of Coordinator.Apply.
func (r *Region) Report(ctx context.Context, usage []ledger.Usage) error {
	panic("federation: not built")
}

// Reconfigure goes on under another valid configuration of the same budget and member.
func (r *Region) Reconfigure(cfg Config) { panic("federation: not built") }

// Close refuses requests from now on and gives back what was not taken, if that is
// possible before ctx is done. Close once.
func (r *Region) Close(ctx context.Context) { panic("federation: not built") }

// Stats returns the present figures.
func (r *Region) Stats() Stats { panic("federation: not built") }
