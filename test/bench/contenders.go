package main

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	memorystore "github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// plenty is a budget that no run uses up, spent one that is used up at once.
const (
	plenty = 1_000_000_000
	spent  = 1
)

// A contender decides one request for a key.
type contender struct {
	name   string
	decide func(key string) bool
	close  func()
}

func keep() {}

// limitOne is the physical limit for one counter.
func limitOne() contender {
	var n atomic.Int64
	start := time.Now()
	return contender{"limit: atomic add + clock", func(string) bool {
		return n.Add(-1) < int64(time.Since(start))
	}, keep}
}

// limitRefuse is the physical limit of a refusal: to look at the counter and at
// the clock.
func limitRefuse() contender {
	var n atomic.Int64
	start := time.Now()
	return contender{"limit: atomic load + clock", func(string) bool {
		return n.Load() > int64(time.Since(start))
	}, keep}
}

// limitKeyed is the physical limit for many counters that exist already.
func limitKeyed(keys []string) contender {
	counters := make(map[string]*atomic.Int64, len(keys))
	for _, k := range slices.Sorted(slices.Values(keys)) {
		counters[k] = new(atomic.Int64)
	}
	start := time.Now()
	return contender{"limit: map + atomic add + clock", func(key string) bool {
		return counters[key].Add(-1) < int64(time.Since(start))
	}, keep}
}

// memory is a store without a network.
type memory struct {
	mu     sync.Mutex
	states map[store.Key]limiter.State
}

func (m *memory) Apply(_ context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, res := p.Step(m.states[key], limiter.Instant(time.Now().UnixMicro()), c)
	m.states[key] = state
	return res, nil
}

func weir(budget, batch int64) *twotier.Limiter {
	return twotier.New(twotier.Config{
		Scope: store.Scope{Cluster: "bench", Namespace: "bench", Policy: "bench", Limit: "bench"},
		Params: limiter.Params{Generation: 1, Rates: []limiter.Rate{
			{Limit: budget, Window: limiter.MaxWindow},
		}},
		Batch:         batch,
		MaxKeys:       math.MaxInt32,
		OnUnavailable: twotier.Deny,
	}, &memory{states: make(map[store.Key]limiter.State)})
}

func weirHandle(name, key string, budget, batch int64) contender {
	l := weir(budget, batch)
	k, ctx := l.Key(key), context.Background()
	return contender{name, func(string) bool {
		d, err := k.Acquire(ctx, 1)
		return err == nil && d.Allowed
	}, func() { l.Close(ctx) }}
}

func weirKeyed(name string, budget int64) contender {
	l := weir(budget, budget)
	ctx := context.Background()
	return contender{name, func(key string) bool {
		d, err := l.Acquire(ctx, key, 1)
		return err == nil && d.Allowed
	}, func() { l.Close(ctx) }}
}

func xtime(budget int) *rate.Limiter {
	if budget == spent {
		return rate.NewLimiter(rate.Every(time.Hour), spent)
	}
	return rate.NewLimiter(rate.Limit(budget), budget)
}

func xtimeOne(budget int) contender {
	l := xtime(budget)
	return contender{"golang.org/x/time/rate", func(string) bool { return l.Allow() }, keep}
}

// xtimeKeyed keeps its limiters in a sync.Map, as users of x/time do.
func xtimeKeyed(budget int) contender {
	var limiters sync.Map
	return contender{"sync.Map + golang.org/x/time/rate", func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, xtime(budget))
		}
		return l.(*rate.Limiter).Allow()
	}, keep}
}

// uberOne never refuses: it waits instead, so it takes part only where nothing
// is refused.
func uberOne() contender {
	l := uber.New(plenty)
	return contender{"go.uber.org/ratelimit", func(string) bool { return !l.Take().IsZero() }, keep}
}

func uberKeyed() contender {
	var limiters sync.Map
	return contender{"sync.Map + go.uber.org/ratelimit", func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, uber.New(plenty))
		}
		return !l.(uber.Limiter).Take().IsZero()
	}, keep}
}

func sethvargo(budget uint64) contender {
	s, err := memorystore.New(&memorystore.Config{Tokens: budget, Interval: time.Hour})
	must(err)
	ctx := context.Background()
	return contender{"sethvargo/go-limiter", func(key string) bool {
		_, _, _, ok, err := s.Take(ctx, key)
		return ok && err == nil
	}, func() { _ = s.Close(ctx) }}
}

func throttle(budget int) contender {
	s, err := memstore.NewCtx(0)
	must(err)
	quota := throttled.RateQuota{MaxRate: throttled.PerSec(1_000_000), MaxBurst: budget}
	if budget == spent {
		quota = throttled.RateQuota{MaxRate: throttled.PerHour(1), MaxBurst: 0}
	}
	l, err := throttled.NewGCRARateLimiterCtx(s, quota)
	must(err)
	ctx := context.Background()
	return contender{"throttled/throttled", func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil
	}, keep}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
