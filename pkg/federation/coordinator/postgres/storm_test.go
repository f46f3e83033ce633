package postgres

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// TestNoLossGrantsTooMuch lets a fleet lease while a server loses what it knows.
func TestNoLossGrantsTooMuch(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	budgettest.Storm(t, budgettest.Subject{Coordinator: New(dial(t, server, 0))}, []func(){
		server.Restart, server.Crash,
		func() { server.Do("TRUNCATE weir.budget_holders") },
		func() { server.Do("DROP SCHEMA weir CASCADE") },
		func() { server.Pause(); <-time.After(time.Second); server.Resume() },
	})
}

// TestNoFailoverGrantsTooMuch goes on with a standby that was promoted.
func TestNoFailoverGrantsTooMuch(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	standby := postgrestest.StartIn(t, primary.Backup(true))
	var c switched
	c.to.Store(New(dial(t, primary, 0)))
	budgettest.Storm(t, budgettest.Subject{Coordinator: &c}, []func(){func() {
		primary.Kill()
		standby.Do("SELECT pg_promote()")
		c.to.Store(New(dial(t, standby, 0)))
	}})
}

// switched is a coordinator at an address that moves from server to server.
type switched struct{ to atomic.Pointer[Coordinator] }

func (s *switched) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	return s.to.Load().Apply(ctx, id, p, c)
}

func (s *switched) Observe(ctx context.Context, id string) (ledger.State, error) {
	return s.to.Load().Observe(ctx, id)
}
