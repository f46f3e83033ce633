package redis

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	// sweepEvery is after how many counters that Apply made it has a partition swept,
	// each in turn: as many are made meanwhile in each.
	sweepEvery = 64
	// maxSwept bounds how many counters are looked at in one round trip, and so for how
	// long a server serves nobody else. It is several times sweepEvery, since some of
	// them have gone on.
	maxSwept = 4 * sweepEvery
)

// A rotation names the partitions in turn, without end.
type rotation struct{ at atomic.Uint32 }

func (r *rotation) next() uint32 { return r.at.Add(1) % partitions }

// Refresh asks one partition whether the serving instance remembers it, and calls
// Warm if it did not. Called every few seconds while nobody asks for a decision,
// it lets the memory of a new instance begin in the window that is open then
// instead of one that opens later. It drops counters that have ended, too. It is one
// round trip, three more after a loss, and the error is that of Warm.
//
// Every call asks another partition. So it finds, within 64 calls, what a Warm that
// failed halfway left out, or a new instance that serves only a part of a cluster.
func (s *Store) Refresh(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return s.explain(err)
	}
	began, err := s.tend(ctx, s.turn.next())
	if err != nil {
		return s.explain(err)
	}
	if began {
		return s.Warm(ctx)
	}
	return nil
}

// tend begins the memory of a partition, if it has not begun, and sweeps it.
func (s *Store) tend(ctx context.Context, partition uint32) (began bool, err error) {
	keys := []string{endsKeys[partition], guardKeys[partition]}
	floor, known, sent := s.floors.of(partition), &s.known[partition], s.clock()
	reply, err := s.sweep.run(ctx, s.client, keys, []any{maxSwept})
	if err != nil {
		return false, err
	}
	list, _ := reply.([]any)
	if len(list) != 4 {
		return false, fmt.Errorf("the script answered %T of %d, want 4", reply, len(list))
	}
	var ints [4]limiter.Instant
	for i := range ints {
		v, _ := list[i].(int64)
		ints[i] = limiter.Instant(v)
	}
	floor.Looked(ints[1], sent, s.clock())
	known.note(limiter.Retention{}, ints[2], ints[1], floor)
	known.note(limiter.Retention{Durable: true}, ints[3], ints[1], floor)
	return ints[0] == 1, nil
}
