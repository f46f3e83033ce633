package redis

import (
	"context"
	"fmt"
	"strings"

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
	sent := s.clock()
	replies, err := s.warmAll(ctx, flag(sound))
	if err != nil {
		return stamps, s.explain(err)
	}
	received := s.clock()
	r := reader{text: replies}
	for p := range stamps {
		r.byte()
		stamps[p] = stamp{limiter.Instant(r.int()), limiter.MemoryID(r.int()), limiter.MemoryID(r.int()), r.byte() >= copied}
	}
	if r.short || r.text != "" {
		return stamps, fmt.Errorf("%s: the script answered %d bytes, which are not the memories of %d partitions", s.name, len(replies), partitions)
	}
	for p := range stamps {
		s.floors.of(uint32(p)).Looked(stamps[p].now, sent, received)
	}
	return stamps, nil
}

// warmAll runs lua/warm.lua for every partition and returns what it replies, in their
// order. The partitions of a cluster are in different slots.
func (s *Store) warmAll(ctx context.Context, sound byte) (string, error) {
	if s.isSingle() {
		reply, err := s.warm.run(ctx, s.client, guardKeys[:], []any{sound})
		text, _ := reply.(string)
		return text, err
	}
	var replies [partitions]*goredis.Cmd
	_, err := s.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for p := range replies {
			replies[p] = pipe.Eval(ctx, s.warm.text, []string{guardKeys[p]}, sound)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	var texts strings.Builder
	for _, reply := range replies {
		text, _ := reply.Val().(string)
		texts.WriteString(text)
	}
	return texts.String(), nil
}

// copied is COPIED of lua/guard.lua.
const copied = 2
