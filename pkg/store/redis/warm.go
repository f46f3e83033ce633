package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Warm begins the memory of every partition on the serving instances, as far as it
// has not begun, and notes whether they lose nothing when they end. It is a few round
// trips to each instance; Apply does it by itself when it meets a new instance.
func (s *Store) Warm(ctx context.Context) error {
	sound := false // a cluster is not
	if _, cluster := s.client.(*goredis.ClusterClient); !cluster {
		is, err := s.inspect(ctx, s.client)
		if err != nil {
			return s.explain(err)
		}
		sound = is.forgetful() == ""
	}
	_, err := s.stamp(ctx, sound)
	return err
}

// A stamp is what the guard of a partition says.
type stamp struct {
	now               limiter.Instant
	volatile, durable limiter.MemoryID
	copied            bool
}

// stamp begins the memory of every partition, and notes whether its instance is sound.
// The error is that of Warm.
func (s *Store) stamp(ctx context.Context, sound bool) ([partitions]stamp, error) {
	var stamps [partitions]stamp
	var replies [partitions]*goredis.Cmd
	sent := s.clock()
	_, err := s.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for p := range replies {
			replies[p] = pipe.Eval(ctx, s.warm.text, []string{guardKeys[p]}, flag(sound))
		}
		return nil
	})
	if err != nil {
		return stamps, s.explain(err)
	}
	received := s.clock()
	for p, reply := range replies {
		text, err := reply.Text()
		r := reader{text: text}
		r.byte()
		stamps[p] = stamp{limiter.Instant(r.int()), limiter.MemoryID(r.int()), limiter.MemoryID(r.int()), r.byte() >= copied}
		if err != nil || r.short || r.text != "" {
			return stamps, fmt.Errorf("%s: the script answered %d bytes of a partition, which are not a memory: %w", s.name, len(text), err)
		}
		s.floors.of(uint32(p)).Looked(stamps[p].now, sent, received)
	}
	return stamps, nil
}

// copied is COPIED of lua/guard.lua.
const copied = 2
