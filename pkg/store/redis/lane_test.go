package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/lane"
)

// trips counts the round trips of decisions.
type trips struct{ single, shared, sharers atomic.Int64 }

// deciders returns how many decisions a command asks for.
func deciders(cmd goredis.Cmder) int64 {
	if args := cmd.Args(); cmd.Name() == "evalsha" {
		return int64(len(args[3+args[2].(int)].([]byte)))
	}
	return 0
}

func (*trips) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *trips) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		switch n := deciders(cmd); {
		case n == 1:
			c.single.Add(1)
		case n > 1:
			c.shared.Add(1)
			c.sharers.Add(n)
		}
		return next(ctx, cmd)
	}
}

func (*trips) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// A crowd is a store whose server hangs while calls crowd in front of it.
type crowd struct {
	*Store
	server *redistest.Server
	trips  trips
	calls  sync.WaitGroup
	joined int64
	failed atomic.Int64
}

// newCrowd returns one whose calls wait for that time before others go beside them.
func newCrowd(t *testing.T, patience time.Duration) *crowd {
	t.Helper()
	c := &crowd{server: redistest.Start(t)}
	client := c.server.Client()
	c.Store = New(client, c.server.Addr)
	if _, err := c.Apply(t.Context(), store.Key{Hash: "first"}, crowdParams(1), limiter.Command{Min: 1, Want: 1}); err != nil {
		t.Fatal(err)
	}
	client.AddHook(&c.trips)
	c.lanes.of(0).setPatience(patience)
	c.server.Pause()
	return c
}

func crowdParams(limit int64) limiter.Params {
	return limiter.Params{Rates: []limiter.Rate{{Limit: limit, Window: limiter.Second}}}
}

// lead lets a call come, and returns when it is under way.
func (c *crowd) lead(t *testing.T) {
	t.Helper()
	before := c.trips.single.Load()
	c.join(t, 1, 0)
	for deadline := time.Now().Add(5 * time.Second); c.trips.single.Load() == before; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a call was not sent")
		}
	}
}

// join lets calls come, each for a limit of its own, and returns when n wait.
func (c *crowd) join(t *testing.T, calls, n int) {
	t.Helper()
	for range calls {
		i := c.joined
		c.joined++
		c.calls.Go(func() {
			key := store.Key{Hash: fmt.Sprint(i)}
			res, err := c.Apply(context.Background(), key, crowdParams(i+1), limiter.Command{Min: 1, Want: 1})
			var unavailable *store.UnavailableError
			switch {
			case errors.As(err, &unavailable):
				c.failed.Add(1)
			case err != nil || res.Limit != i+1:
				t.Errorf("call %d: limit %d, error %v", i, res.Limit, err)
			}
		})
	}
	for deadline := time.Now().Add(5 * time.Second); c.waiting() != n; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls wait, want %d", c.waiting(), n)
		}
	}
}

func (c *crowd) waiting() int { return c.lanes.of(0).Waiting() }

// executed returns how many counters the server made for the crowd.
func (c *crowd) executed() int {
	return len(c.server.Do("KEYS", "weir:*/*").([]any)) - 1 // the first
}

func TestCallsThatWaitShareRoundTrips(t *testing.T) {
	const calls = 40
	c := newCrowd(t, time.Hour)
	defer c.Close()
	c.lead(t)
	c.join(t, calls-1, calls-1)
	c.server.Resume()
	c.calls.Wait()
	c.check(t, calls, 1, calls-1)
}

// TestCallsGoBesideOneThatHangs lets each wait for no other, up to as many as may be under
// way.
func TestCallsGoBesideOneThatHangs(t *testing.T) {
	const calls = 40
	c := newCrowd(t, 0)
	defer c.Close()
	for range lane.MaxFlights {
		c.lead(t)
	}
	c.join(t, calls-lane.MaxFlights, calls-lane.MaxFlights)
	c.server.Resume()
	c.calls.Wait()
	c.check(t, calls, lane.MaxFlights, calls-lane.MaxFlights)
}

// check wants all calls to be decided, with the given numbers alone and in one round trip.
func (c *crowd) check(t *testing.T, calls, alone, together int) {
	t.Helper()
	if c.failed.Load() > 0 || c.executed() != calls {
		t.Errorf("%d of %d calls failed, the server made %d decisions", c.failed.Load(), calls, c.executed())
	}
	if c.trips.single.Load() != int64(alone) || c.trips.shared.Load() != 1 || c.trips.sharers.Load() != int64(together) {
		t.Errorf("%d calls were %d alone and %d in %d round trips, want %d alone and %d in one",
			calls, c.trips.single.Load(), c.trips.sharers.Load(), c.trips.shared.Load(), alone, together)
	}
}

func TestAWaitingCallThatIsCancelledIsNotSent(t *testing.T) {
	c := newCrowd(t, time.Hour)
	defer c.Close()
	c.lead(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Apply(ctx, store.Key{Hash: "late"}, crowdParams(1), limiter.Command{Min: 1, Want: 1})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	c.server.Resume()
	c.calls.Wait()
	if c.executed() != 1 {
		t.Errorf("the server made %d decisions, want 1", c.executed())
	}
}

func TestClosingEndsWaitingCalls(t *testing.T) {
	const calls = 6
	c := newCrowd(t, time.Hour)
	c.lead(t)
	c.join(t, calls-1, calls-1)
	start := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	c.calls.Wait()
	if took := time.Since(start); took > 900*time.Millisecond || c.failed.Load() != calls {
		t.Errorf("after %v %d of %d calls failed", took, c.failed.Load(), calls)
	}
	if _, err := c.Apply(t.Context(), store.Key{}, crowdParams(1), limiter.Command{Min: 1, Want: 1}); err == nil {
		t.Error("a store that is closed decides")
	}
	c.server.Resume()
}
