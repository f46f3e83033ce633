package redis

import (
	"context"
	"sync/atomic"
)

// A rotation names the partitions in turn, without end.
type rotation struct{ at atomic.Uint32 }

func (r *rotation) next() uint32 { return r.at.Add(1) % partitions }

// Refresh asks one partition whether the serving instance remembers it, and calls
// Warm if it did not. Called every few seconds while nobody asks for a decision,
// it lets the memory of a new instance begin in the window that is open then
// instead of one that opens later. It is one round trip, two more after a loss,
// and the error is that of Warm.
//
// Every call asks another partition. So it finds, within 64 calls, what a Warm that
// failed halfway left out, or a new instance that serves only a part of a cluster.
func (s *Store) Refresh(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return s.explain(err)
	}
	began, err := s.warm.run(ctx, s.client, []string{guardKeys[s.turn.next()]}, nil)
	if err != nil {
		return s.explain(err)
	}
	if began == int64(1) {
		return s.Warm(ctx)
	}
	return nil
}
