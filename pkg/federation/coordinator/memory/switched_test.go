package memory_test

import (
	"context"
	"sync/atomic"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// switched is a coordinator that another takes the place of.
type switched struct{ to atomic.Value }

func (s *switched) set(c budgettest.Coordinator) { s.to.Store(c) }

func (s *switched) get() budgettest.Coordinator { return s.to.Load().(budgettest.Coordinator) }

func (s *switched) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	return s.get().Apply(ctx, id, p, c)
}

func (s *switched) Observe(ctx context.Context, id string) (ledger.State, error) {
	return s.get().Observe(ctx, id)
}
