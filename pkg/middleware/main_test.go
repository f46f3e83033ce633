package middleware_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when a minute begins.
const noon = limiter.Instant(1_800_000_000 * limiter.Second)

// perMinute is a limit over a store in memory, whose clock stands still at noon.
func perMinute(t *testing.T, limit int64, change ...func(*twotier.Config)) *twotier.Limiter {
	t.Helper()
	counters := memory.New(memory.Options{Clock: func() limiter.Instant { return noon }, First: true})
	return over(t, counters, limit, change...)
}

// over is a limit over a store.
func over(t *testing.T, counters twotier.Store, limit int64, change ...func(*twotier.Config)) *twotier.Limiter {
	t.Helper()
	config := twotier.Config{
		Scope:   store.Scope{Namespace: "shop", Policy: "checkout", Limit: "all"},
		Params:  limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: 60 * limiter.Second}}},
		Size:    twotier.Size{Batch: 1},
		MaxKeys: 10,
		Holders: 1,
	}
	for _, f := range change {
		f(&config)
	}
	l, err := twotier.New(config, counters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

// away is a store that cannot be reached.
type away struct{}

func (away) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{Cause: errors.New("no route to host")}
}

// failing sets the failure action.
func failing(a twotier.Action) func(*twotier.Config) {
	return func(c *twotier.Config) { c.OnUnavailable = a }
}

// leaky makes the limit a LeakyBucket of one unit a second that delays by up to 10 s.
func leaky(c *twotier.Config) {
	c.Params.Algorithm, c.Params.MaxDelay = limiter.LeakyBucket, 10*limiter.Second
	c.Params.Rates[0].Limit = 60
}
