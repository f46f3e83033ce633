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
	ours   bool
	trips  func() int64 // round trips so far; nil when there are none to count
}

func keep() {}

func (c contender) tripped() int64 {
	if c.trips == nil {
		return 0
	}
	return c.trips()
}

func peer(name string, decide func(key string) bool, close func()) contender {
	return contender{name: name, decide: decide, close: close}
}

// limitOne is the physical limit for one counter.
func limitOne() contender {
	var n atomic.Int64
	start := time.Now()
	return peer("limit: atomic add + clock", func(string) bool {
		return n.Add(-1) < int64(time.Since(start))
	}, keep)
}

// limitRefuse is the physical limit of a refusal: to look at the counter and at
// the clock.
func limitRefuse() contender {
	var n atomic.Int64
	start := time.Now()
	return peer("limit: atomic load + clock", func(string) bool {
		return n.Load() > int64(time.Since(start))
	}, keep)
}

// limitKeyed is the physical limit for many counters that exist already.
func limitKeyed(keys []string) contender {
	counters := make(map[string]*atomic.Int64, len(keys))
	for _, k := range slices.Sorted(slices.Values(keys)) {
		counters[k] = new(atomic.Int64)
	}
	start := time.Now()
	return peer("limit: map + atomic add + clock", func(key string) bool {
		return counters[key].Add(-1) < int64(time.Since(start))
	}, keep)
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

// window is a fixed window of that many units that lasts longer than any run.
func window(budget int64) limiter.Params {
	return limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: budget, Window: limiter.MaxWindow}}}
}

func config(p limiter.Params, batch int64) twotier.Config {
	return twotier.Config{
		Scope:         store.Scope{Cluster: "bench", Namespace: "bench", Policy: "bench", Limit: "bench"},
		Params:        p,
		Size:          twotier.Size{Type: twotier.Fixed, Batch: batch},
		MaxKeys:       math.MaxInt32,
		Timeout:       time.Minute,
		OnUnavailable: twotier.Deny,
	}
}

// generous is a store that remembers nothing, so that only what a limiter keeps takes
// memory.
type generous struct{}

func (generous) Apply(_ context.Context, _ store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	_, res := p.Step(limiter.State{}, limiter.Instant(time.Now().UnixMicro()), c)
	return res, nil
}

// mustLimit is twotier.New with a configuration that is valid.
func mustLimit(cfg twotier.Config, s twotier.Store) *twotier.Limiter {
	l, err := twotier.New(cfg, s)
	if err != nil {
		panic(err)
	}
	return l
}

func weir(name, key string, cfg twotier.Config, s twotier.Store) contender {
	l, ctx := mustLimit(cfg, s), context.Background()
	k := l.Key(key, "")
	return contender{
		name: name,
		ours: true,
		decide: func(string) bool {
			d, err := k.Acquire(ctx, 1)
			return err == nil && d.Allowed
		},
		close: func() { l.Close(ctx) },
		trips: func() int64 { return l.Stats().RoundTrips },
	}
}

func weirHandle(name string, p limiter.Params, batch int64) contender {
	return weir(name, "key", config(p, batch), &memory{states: make(map[store.Key]limiter.State)})
}

// weirAlgorithms are the algorithms whose grants live for a time instead of a
// window, at rates that admit every request of the run.
func weirAlgorithms() []contender {
	const limit, window, lifetime = 1_000_000_000, limiter.Second, 50 * limiter.Millisecond
	var out []contender
	for _, a := range []limiter.Algorithm{limiter.SlidingWindow, limiter.SlidingLog, limiter.TokenBucket, limiter.GCRA} {
		p := limiter.Params{Algorithm: a, Generation: 1, Lifetime: lifetime, Rates: []limiter.Rate{{Limit: limit, Window: window}}}
		if a == limiter.SlidingWindow {
			p.Buckets = 60
		}
		out = append(out, weirHandle("weir, "+a.String(), p, limit/100))
	}
	return out
}

func weirKeyed(name string, budget int64) contender {
	return weirKeyedOn(name, budget, &memory{states: make(map[store.Key]limiter.State)})
}

func weirKeyedOn(name string, budget int64, s twotier.Store) contender {
	l := mustLimit(config(window(budget), budget), s)
	ctx := context.Background()
	return contender{name: name, ours: true, decide: func(key string) bool {
		d, err := l.Acquire(ctx, twotier.Request{Value: key, Cost: 1})
		return err == nil && d.Allowed
	}, close: func() { l.Close(ctx) }}
}

func xtime(budget int) *rate.Limiter {
	if budget == spent {
		return rate.NewLimiter(rate.Every(time.Hour), spent)
	}
	return rate.NewLimiter(rate.Limit(budget), budget)
}

func xtimeOne(budget int) contender {
	l := xtime(budget)
	return peer("golang.org/x/time/rate", func(string) bool { return l.Allow() }, keep)
}

// xtimeKeyed keeps its limiters in a sync.Map, as users of x/time do.
func xtimeKeyed(budget int) contender {
	var limiters sync.Map
	return peer("sync.Map + golang.org/x/time/rate", func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, xtime(budget))
		}
		return l.(*rate.Limiter).Allow()
	}, keep)
}

// uberOne never refuses: it waits instead, so it takes part only where nothing
// is refused.
func uberOne() contender {
	l := uber.New(plenty)
	return peer("go.uber.org/ratelimit", func(string) bool { return !l.Take().IsZero() }, keep)
}

func uberKeyed() contender {
	var limiters sync.Map
	return peer("sync.Map + go.uber.org/ratelimit", func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, uber.New(plenty))
		}
		return !l.(uber.Limiter).Take().IsZero()
	}, keep)
}

func sethvargo(budget uint64) contender {
	s, err := memorystore.New(&memorystore.Config{Tokens: budget, Interval: time.Hour})
	must(err)
	ctx := context.Background()
	return peer("sethvargo/go-limiter", func(key string) bool {
		_, _, _, ok, err := s.Take(ctx, key)
		return ok && err == nil
	}, func() { _ = s.Close(ctx) })
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
	return peer("throttled/throttled", func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil
	}, keep)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
