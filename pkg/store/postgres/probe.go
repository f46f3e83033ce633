package postgres

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/store"
)

// Probe reports what the server guarantees as it is configured now. It proves on the
// way that it decides: the error is that of Apply.
func (s *Store) Probe(ctx context.Context) (store.Guarantee, error) {
	if err := s.Refresh(ctx); err != nil {
		return store.Guarantee{}, err
	}
	var f facts
	var err error
	f.replicas, err = Run[int](ctx, s, s.program.Program, "SELECT count(*) FROM pg_stat_replication")
	if err == nil {
		f.logged, err = Run[int](ctx, s, s.program.Program, "SELECT count(*) FROM pg_class WHERE relpersistence <> 'u' AND oid IN ('weir.counters'::regclass, 'weir.memory'::regclass)")
	}
	if err != nil {
		return store.Guarantee{}, err
	}
	return f.judge(), nil
}

// facts are what a guarantee depends on.
type facts struct {
	replicas int // connected
	logged   int // tables that survive a crash
}

func (f facts) judge() store.Guarantee {
	if f.logged > 0 {
		return store.Guarantee{
			Grade: store.BestEffort,
			Reason: "the tables in schema weir are logged, so counts that miss the last grants may outlive a crash; " +
				"ALTER TABLE ... SET UNLOGGED, or drop the schema",
		}
	}
	if f.replicas > 0 {
		return store.Guarantee{
			Grade: store.HardExceptSplitBrain,
			Reason: fmt.Sprintf("%d standbys: after a failover the old primary may grant until it is stopped; "+
				"a failover that fences it first rules that out", f.replicas),
		}
	}
	return store.Guarantee{Grade: store.Hard}
}
