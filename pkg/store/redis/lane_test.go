package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/storetest/redistest"
)

// trips counts the round trips of decisions.
type trips struct{ single, shared, sharers atomic.Int64 }

func decides(cmd goredis.Cmder) bool { return cmd.Name() == "evalsha" }

func (*trips) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *trips) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if decides(cmd) {
			c.single.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if decides(cmds[0]) {
			c.shared.Add(1)
			c.sharers.Add(int64(len(cmds)))
		}
		return next(ctx, cmds)
	}
}

// A crowd is a store whose server hangs while calls crowd in front of it.
type crowd struct {
	*Store
	server *redistest.Server
	trips  trips
	calls  sync.WaitGroup
	failed atomic.Int64
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{server: redistest.Start(t)}
	client := c.server.Client()
	c.Store = New(client, c.server.Addr)
	if _, err := c.Apply(t.Context(), store.Key{Hash: "first"}, crowdParams(1), limiter.Command{Min: 1, Want: 1}); err != nil {
		t.Fatal(err)
	}
	client.AddHook(&c.trips)
	c.server.Do("CONFIG", "RESETSTAT")
	c.server.Pause()
	return c
}

func crowdParams(limit int64) limiter.Params {
	return limiter.Params{Rates: []limiter.Rate{{Limit: limit, Window: limiter.Second}}}
}

// join lets calls come, each for a limit of its own, and returns when n wait.
func (c *crowd) join(t *testing.T, calls, n int) {
	t.Helper()
	for i := range int64(calls) {
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

func (c *crowd) waiting() int {
	l := c.lanes.of(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// executed returns how many decisions the server made.
func (c *crowd) executed() string {
	_, rest, _ := strings.Cut(c.server.Do("INFO", "commandstats").(string), "cmdstat_evalsha:calls=")
	n, _, _ := strings.Cut(rest, ",")
	return n
}

func TestCallsThatWaitShareRoundTrips(t *testing.T) {
	const calls = 40
	c := newCrowd(t)
	defer c.Close()
	c.join(t, calls, calls-maxFlights)
	c.server.Resume()
	c.calls.Wait()
	if c.failed.Load() > 0 || c.executed() != fmt.Sprint(calls) {
		t.Errorf("%d of %d calls failed, the server made %s decisions", c.failed.Load(), calls, c.executed())
	}
	if c.trips.single.Load() != maxFlights || c.trips.shared.Load() != 1 || c.trips.sharers.Load() != calls-maxFlights {
		t.Errorf("%d calls were %d alone and %d in %d round trips, want %d alone and the rest in one",
			calls, c.trips.single.Load(), c.trips.sharers.Load(), c.trips.shared.Load(), maxFlights)
	}
}

func TestAWaitingCallThatIsCancelledIsNotSent(t *testing.T) {
	c := newCrowd(t)
	defer c.Close()
	c.join(t, maxFlights, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for c.trips.single.Load() < maxFlights {
		<-time.After(time.Millisecond)
	}
	_, err := c.Apply(ctx, store.Key{Hash: "late"}, crowdParams(1), limiter.Command{Min: 1, Want: 1})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	c.server.Resume()
	c.calls.Wait()
	if c.executed() != fmt.Sprint(maxFlights) {
		t.Errorf("the server made %s decisions, want %d", c.executed(), maxFlights)
	}
}

func TestClosingEndsWaitingCalls(t *testing.T) {
	const calls = maxFlights + 5
	c := newCrowd(t)
	c.join(t, calls, calls-maxFlights)
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
