package pools_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	interval = time.Second
	leaseTTL = 2 * time.Second
)

// A world has one coordinator for all pools, which remembers what it was sent.
type world struct {
	memory *memory.Coordinator

	mu       sync.Mutex
	mute     bool // it does not hear of holders that leave
	away     bool
	heard    []pool.Command
	params   pool.Params           // of the last command
	retained map[policy.Store]bool // when that was last said
	over     policy.Store          // whose connections the last command came over
}

// A way leads to the coordinator over a store's connections.
type way struct {
	*world
	store policy.Store
}

func (w way) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	w.set(func(of *world) { of.over = w.store })
	return w.world.Apply(ctx, key, p, c)
}

var errAway = &store.UnavailableError{Store: "test", Cause: errors.New("away")}

func (w *world) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	w.mu.Lock()
	w.heard, w.params = append(w.heard, c), p
	lost := w.away || w.mute && c.Op == pool.Leave
	w.mu.Unlock()
	if key.Name == "slow" && c.Op == pool.Leave {
		time.Sleep(interval / 2)
	}
	if lost {
		return pool.Grant{}, errAway
	}
	return w.memory.Apply(ctx, key, p, c)
}

func (w *world) Coordinator(s policy.Store) (concurrency.Coordinator, error) {
	if s.Type == policy.PostgresStore {
		return nil, errors.New("not here")
	}
	return way{w, s}, nil
}

func (w *world) Retain(used map[policy.Store]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retained = used
}

// used returns what nobody may close.
func (w *world) used() map[policy.Store]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.retained
}

// last returns whose connections the last command came over.
func (w *world) last() policy.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// set changes how the coordinator behaves.
func (w *world) set(change func(w *world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

func (w *world) said(op pool.Op) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(w.heard), func(c pool.Command) bool { return c.Op != op }))
}

// A sidecar is an enforcer in a world of its own.
type sidecar struct {
	*pools.Enforcer
	world *world
	t     *testing.T
}

// inBubble runs a test with a sidecar whose time is the bubble's.
func inBubble(t *testing.T, mode enforce.Mode, test func(t *testing.T, s *sidecar)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		now := func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }
		w := &world{memory: memory.New(memory.Options{Clock: now, Term: 1, First: true})}
		s := &sidecar{pools.New(pools.Config{Holder: "uid/nonce", Mode: mode, Coordinators: w}), w, t}
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			s.Close(ctx)
		}()
		test(t, s)
	})
}

// apply puts pools in force, one after the other, nil for none.
func (s *sidecar) apply(ps ...*policy.Pool) {
	s.t.Helper()
	for _, p := range ps {
		set, err := policy.Compile(policy.Snapshot{Cluster: "test", Pool: p})
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.Apply(set); err != nil {
			s.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// State returns the state of the first pool, nil when there is none.
func (s *sidecar) State() *pools.State {
	for _, first := range s.States() {
		return &first
	}
	return nil
}

// enter returns the slot of a request.
func (s *sidecar) enter(path string) (pools.Slot, *pools.Refusal) {
	return s.Acquire(httptest.NewRequest(http.MethodGet, path, http.NoBody))
}

// hold returns the slot of a request that has to get one.
func (s *sidecar) hold() pools.Slot {
	s.t.Helper()
	slot, refusal := s.enter("/")
	if refusal != nil || !slot.Held() {
		s.t.Fatalf("no slot: %+v", refusal)
	}
	return slot
}

func (s *sidecar) inFlight() int64 { return s.State().Stats.InFlight }

// inRedis moves a pool's coordinator, whose credentials are of some version.
func inRedis(version string) func(*policy.Pool) {
	return func(p *policy.Pool) {
		p.Coordinator = policy.Store{
			Type: policy.RedisStore, Address: "cache:6379", Secret: "shop/cache", SecretVersion: version,
		}
	}
}

// newPool is a pool of n slots.
func newPool(n int64, changes ...func(*policy.Pool)) *policy.Pool {
	p := &policy.Pool{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce,
		Coordinator: policy.Store{Type: policy.ControllerStore},
		Limit:       policy.LimitRange{Min: n, Initial: n, Max: n},
		Algorithm:   policy.LimitAlgorithm{Type: policy.FixedLimit},
		Aggregate:   policy.Median, Allocation: policy.EqualSplit, Handoff: policy.Acknowledged,
		Heartbeat: policy.Heartbeat{
			Interval: limiter.Second, LeaseTTL: 2 * limiter.Second, MinInterval: limiter.Second / 10, Eager: true,
		},
		SelfFence:           policy.SelfFence{Margin: limiter.Second / 2, OnFenced: policy.Drain},
		OnCoordinatorOutage: policy.FailClosed,
		StatusCode:          http.StatusServiceUnavailable,
	}
	for _, change := range changes {
		change(p)
	}
	return p
}
