package redis

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	// sweepEvery is after how many counters that Apply made it has as many swept, and more.
	sweepEvery = 64
	// maxSwept bounds how many counters are looked at in one round trip, but for the rest of
	// a list, and so for how long a server serves nobody else. It is several times sweepEvery,
	// since some of them have gone on.
	maxSwept = 4 * sweepEvery
)

// A rotation names the partitions in turn, without end.
type rotation struct{ at atomic.Uint32 }

func (r *rotation) next() uint32 { return r.at.Add(1) % partitions }

// Refresh asks one partition whether the serving instance remembers it, and calls
// Warm if it did not. Called every few seconds while nobody asks for a decision,
// it lets the memory of a new instance begin in the window that is open then
// instead of one that opens later. It drops counters that have ended, too. It is one
// round trip to a cluster and two to a single server, three more after a loss, and the
// error is that of Warm.
//
// Every call asks another partition. So it finds, within 64 calls, what a Warm that
// failed halfway left out, or a new instance that serves only a part of a cluster.
func (s *Store) Refresh(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return s.explain(err)
	}
	began, err := s.tend(ctx, s.turn.next())
	if err == nil && !began && s.isSingle() {
		began, err = s.tendAll(ctx)
	}
	if err != nil {
		return s.explain(err)
	}
	if began {
		return s.Warm(ctx)
	}
	return nil
}

// isSingle reports whether all partitions are on one server.
func (s *Store) isSingle() bool { return len(s.lanes) == 1 }

// tidy sweeps counters of the list that one is in which was just made, beside the calls.
func (s *Store) tidy(together bool) {
	s.lanes[0].Beside(func() {
		if together && s.isSingle() {
			_, _ = s.tendAll(context.Background()) // or the next time
		} else {
			_, _ = s.tend(context.Background(), s.turn.next())
		}
	})
}

// tendAll sweeps counters of all partitions, and reports whether it began the memory of one.
func (s *Store) tendAll(ctx context.Context) (began bool, err error) {
	ints, err := s.swept(ctx, append([]string{commonEnds}, guardKeys[:]...))
	return ints[0] == 1, err
}

// tend begins the memory of a partition, if it has not begun, and sweeps it.
func (s *Store) tend(ctx context.Context, partition uint32) (began bool, err error) {
	floor, known, sent := s.floors.of(partition), &s.known[partition], s.clock()
	ints, err := s.swept(ctx, []string{endsKeys[partition], guardKeys[partition]})
	if err != nil {
		return false, err
	}
	floor.Looked(ints[1], sent, s.clock())
	known.note(limiter.Retention{}, ints[2], ints[1], floor)
	known.note(limiter.Retention{Durable: true}, ints[3], ints[1], floor)
	return ints[0] == 1, nil
}

// swept runs lua/sweep.lua and returns what that replies.
func (s *Store) swept(ctx context.Context, keys []string) (ints [4]limiter.Instant, err error) {
	reply, err := s.sweep.run(ctx, s.client, keys, []any{maxSwept})
	if err != nil {
		return ints, err
	}
	list, _ := reply.([]any)
	if len(list) != len(ints) {
		return ints, fmt.Errorf("the script answered %T of %d, want %d", reply, len(list), len(ints))
	}
	for i := range ints {
		v, _ := list[i].(int64)
		ints[i] = limiter.Instant(v)
	}
	return ints, nil
}
