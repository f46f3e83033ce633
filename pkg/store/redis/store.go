package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis/rest"
)

// A Store applies commands to counters in Redis. It is safe for concurrent use. What
// goroutines it and its client start have ended when Close returns.
type Store struct {
	client  goredis.UniversalClient
	name    string
	watched bool         // by Sentinels, which choose the primary
	rest    *rest.Client // what client dials by, nil for servers that are reached directly
	clock   func() int64 // nanoseconds, for the floors
	step    script       // for commands that batch does not decide
	batch   script
	warm    script
	sweep   script
	look    script // with put: of Update
	put     script
	turn    rotation // of Refresh
	lanes   lanes    // of Apply
	floors  floors
	known   [partitions]recollections
	made    [2]atomic.Uint32 // counters, by step and by batch
}

// New returns a store that calls through client, which Close closes. Errors call the
// servers by name. The client should have ContextTimeoutEnabled, without which a call
// may outlive its context's deadline by the client's own time-outs; Open makes one
// that is right.
func New(client goredis.UniversalClient, name string) *Store {
	return newStore(client, name, preamble(luaFile("server"), false), sinceStart())
}

// sinceStart returns the monotonic clock of the process.
func sinceStart() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}

// newStore returns a store whose scripts begin with a preamble, by the monotonic clock of
// the process. It must not run ahead of true time, so it is one that stands still while the
// machine is suspended.
func newStore(client goredis.UniversalClient, name string, before []string, clock func() int64) *Store {
	s := &Store{
		client: client,
		name:   name,
		clock:  clock,
		step:   newScript(before, stepFiles),
		batch:  newScript(before, batchFiles),
		warm:   newScript(before, warmFiles),
		sweep:  newScript(before, sweepFiles),
		look:   newScript(before, lookFiles),
		put:    newScript(before, putFiles),
		floors: make(floors, clocks(client)),
	}
	s.lanes = newLanes(client, s.batch)
	s.turn.at.Store(rand.Uint32()) // a fleet asks different partitions
	return s
}

// floors are what is known of the clocks of the servers: of each partition, since the
// nodes of a cluster have clocks of their own.
type floors []floor

// A floor is what is known of one clock.
type floor struct {
	store.Floor
	// doubtful is the newest instant that the clock was behind without the memory knowing
	// it: memories before may have granted of windows that had begun by then.
	doubtful atomic.Int64
}

func (f *floor) doubt(at limiter.Instant) {
	for {
		was := f.doubtful.Load()
		if int64(at) <= was || f.doubtful.CompareAndSwap(was, int64(at)) {
			return
		}
	}
}

func (fs floors) of(partition uint32) *floor { return &fs[int(partition)%len(fs)] }

// clocks returns 1 for a single server, where all partitions are decided by one clock.
func clocks(client goredis.UniversalClient) int {
	if _, single := client.(*goredis.Client); single {
		return 1
	}
	return partitions
}

// Close closes the client. Calls under way fail.
func (s *Store) Close() error {
	err := s.lanes.close(s.client)
	if s.rest != nil {
		s.rest.Close()
	}
	return err
}

// Reached notes what others know of the clocks of all servers.
func (s *Store) Reached(by store.Reached) {
	for i := range s.floors {
		s.floors[i].Observe(by.Now, s.clock())
		s.floors[i].doubt(by.Doubtful)
	}
}

// Apply runs c for one counter in one round trip; calls that come while many are under
// way share theirs. It is two round trips after the server lost its script cache, or its
// memory, and the first time after the limit was edited. Refusals are results. The error is a *store.UnavailableError when the server could not be
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
	counter, partition := counterKeyOf(key)
	if err := ctx.Err(); err != nil {
		return limiter.Result{}, s.explainOf(partition, err)
	}
	if _, cluster := s.client.(*goredis.ClusterClient); cluster {
		p.Retention.Durable = p.Retention.Resume // a partition that moved looks like a restart
	}
	floor, known := s.floors.of(partition), &s.known[partition]
	reply, sent, together, err := s.decide(ctx, counter, partition, p, c, floor.At(s.clock()), known.get(p.Retention, floor))
	if err != nil {
		return limiter.Result{}, s.explainOf(partition, err)
	}
	res, begun, marks, err := decode(reply, p)
	if err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %w", s.name, err)
	}
	floor.Answered(c, res, s.clock())
	if reached := res.Now.Add(res.RetryAfter); res.Reason == limiter.ClockBehind && reached == sent && reached > c.Floor {
		floor.doubt(reached) // which the memory does not know to have been reached
	}
	known.note(p.Retention, begun, res.Now, floor)
	switch {
	case marks&began != 0:
		// The instance is new. Partitions that are idle now would pay for it in a
		// later window; what cannot be stamped now stamps itself then.
		_ = s.Warm(ctx)
	case marks&made != 0 && s.made[flag(together)].Add(1)%sweepEvery == 0:
		s.tidy(together)
	}
	return res, nil
}

// decide has a script decide a command: the one of batches, and the other one for what is
// rare, which that leaves as it is. It returns the floor that was sent, by what the server's clock has
// reached, and reports whether the script of batches decided.
func (s *Store) decide(
	ctx context.Context, counter string, partition uint32, p limiter.Params, c limiter.Command, reached limiter.Instant, known store.Recollection,
) (reply any, sent limiter.Instant, together bool, err error) {
	if isQuick(p, c) {
		a := newAsk(partition, counter, p, c, reached, known)
		if err := s.lanes.of(partition).decide(ctx, a); err != nil {
			return nil, 0, false, err // the ask may still be under way
		}
		if a.reply != "" {
			return a.reply, a.reached, true, nil
		}
	}
	c.Floor = max(c.Floor, reached)
	reply, err = s.step.run(ctx, s.lanes.of(partition), []string{counter, guardKeys[partition]}, encode(p, c, known))
	return reply, c.Floor, false, err
}
