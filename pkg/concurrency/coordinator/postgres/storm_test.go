package postgres

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/pooltest"
	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// TestNoLossGrantsTooMuch lets a fleet use a pool while a server loses what it knows.
func TestNoLossGrantsTooMuch(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	pooltest.Storm(t, New(dial(t, server)), []func(){
		server.Restart, server.Crash,
		func() { server.Do("TRUNCATE weir.holders") },
		func() { server.Do("DROP SCHEMA weir CASCADE") },
		func() { server.Pause(); <-time.After(time.Second); server.Resume() },
	})
}

// TestNoFailoverGrantsTooMuch goes on with a standby that was promoted, as with a
// primary that others follow.
func TestNoFailoverGrantsTooMuch(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	standby := postgrestest.StartIn(t, primary.Backup(true))
	var c switched
	c.to.Store(New(dial(t, primary)))
	pooltest.Storm(t, &c, []func(){func() {
		primary.Kill()
		standby.Do("SELECT pg_promote()")
		c.to.Store(New(dial(t, standby)))
	}})
}

// switched is a coordinator at an address that moves from server to server.
type switched struct{ to atomic.Pointer[Coordinator] }

func (s *switched) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	return s.to.Load().Apply(ctx, key, p, c)
}
