package redis

import (
	"context"
	"fmt"
	"math/rand/v2"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Store applies commands to counters in Redis. It is safe for concurrent use. What
// goroutines it and its client start have ended when Close returns.
type Store struct {
	client goredis.UniversalClient
	name   string
	step   script
	warm   script
	look   script // with put: of Update
	put    script
	turn   rotation // of Refresh
	lanes  lanes    // of Apply
}

// New returns a store that calls through client, which Close closes. Errors call the
// servers by name. The client should have ContextTimeoutEnabled, without which a call
// may outlive its context's deadline by the client's own time-outs; Open makes one
// that is right.
func New(client goredis.UniversalClient, name string) *Store {
	return newStore(client, name, luaFile("server"))
}

func newStore(client goredis.UniversalClient, name, server string) *Store {
	s := &Store{
		client: client,
		name:   name,
		step:   newScript(server, stepFiles),
		warm:   newScript(server, warmFiles),
		look:   newScript(server, lookFiles),
		put:    newScript(server, putFiles),
		lanes:  newLanes(client),
	}
	s.turn.at.Store(rand.Uint32()) // a fleet asks different partitions
	return s
}

// Close closes the client. Calls under way fail.
func (s *Store) Close() error { return s.lanes.close(s.client) }

// Apply runs c for one counter in one round trip, two after the server lost its
// script cache; calls that come while many are under way share theirs. Refusals are
// results. The error is a *store.UnavailableError when the server could not be
// reached, was not able to decide, or ctx was done; in a cluster it speaks for the
// partition of the counter. Any other error names what is wrong with p or c, or is a
// defect.
//
// A call whose error is unavailable may still have been carried out: a lost reply
// strands what it granted, until the window ends.
func (s *Store) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := p.Validate(); err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %s: %w", s.name, key, err)
	}
	if err := c.Validate(); err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %s: %w", s.name, key, err)
	}
	keys, partition := keysOf(key)
	if err := ctx.Err(); err != nil {
		return limiter.Result{}, s.explainOf(partition, err)
	}
	reply, err := s.step.run(ctx, s.lanes.of(partition), keys, encode(p, c))
	if err != nil {
		return limiter.Result{}, s.explainOf(partition, err)
	}
	res, began, err := decode(reply, p)
	if err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %w", s.name, err)
	}
	if began {
		// The instance is new. Partitions that are idle now would pay for it in a
		// later window; what cannot be stamped now stamps itself then.
		_ = s.Warm(ctx)
	}
	return res, nil
}

// Warm begins the memory of every partition on the serving instances, as far as
// it has not begun. It is one round trip to each instance; Apply does it by
// itself when it meets a new instance.
func (s *Store) Warm(ctx context.Context) error {
	_, err := s.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for p := range uint32(partitions) {
			pipe.Eval(ctx, s.warm.text, []string{guardKeys[p]})
		}
		return nil
	})
	if err != nil {
		return s.explain(err)
	}
	return nil
}
