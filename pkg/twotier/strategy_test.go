package twotier_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/storetest"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A slowStart is a store with a rule of its own: a counter that was idle for a window admits a
// tenth of its limit, and twice as much in each window after, up to the limit. It spares a
// backend whose caches are cold. It has no bound on the number of counters.
type slowStart struct {
	clock func() limiter.Instant

	mu       sync.Mutex
	counters map[store.Key]ramp
}

// A ramp is one counter.
type ramp struct{ window, most, used int64 }

// Apply makes a slowStart a twotier.Store.
func (s *slowStart) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := errors.Join(p.Validate(), c.Validate()); err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %w", key, err)
	}
	if err := ctx.Err(); err != nil {
		return limiter.Result{}, &store.UnavailableError{Store: "the slow start", Cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, res := s.counters[key].step(p.Rates[0], s.clock(), c)
	if c.Op != limiter.Peek {
		s.counters[key] = next
	}
	return res, nil
}

// step is the rule. Like that of limiter.Params.Step it is a pure function.
func (r ramp) step(rate limiter.Rate, now limiter.Instant, c limiter.Command) (ramp, limiter.Result) {
	w := rate.WindowAt(now)
	ends := w.End().Sub(now)
	res := limiter.Result{Now: now, Algorithm: limiter.FixedWindow, ExpiresIn: ends, ResetAfter: ends}
	switch {
	case w.Index < r.window: // the clock has stepped back: nothing is granted twice
		res.Reason, res.RetryAfter = limiter.ClockBehind, limiter.OpenWindow{Rate: rate, Index: r.window}.Start().Sub(now)
		return r, res
	case w.Index == r.window+1 && r.most > 0:
		r = ramp{window: w.Index, most: min(2*r.most, rate.Limit)}
	case w.Index != r.window:
		r = ramp{window: w.Index, most: max(1, rate.Limit/10)}
	}
	next := r
	switch left := r.most - r.used; {
	case c.Op == limiter.Return:
		if res.Reason = limiter.Forfeited; c.Windows.N == 1 && c.Windows.Open[0].Index == w.Index && c.Want <= r.used {
			res.Reason, res.Granted = limiter.Granted, c.Want
			next.used -= c.Want
		}
	case c.Op == limiter.Reset:
		next.used = 0
	case c.Min > rate.Limit:
		res.Reason = limiter.TooLarge
	case c.Min > left:
		res.Reason, res.RetryAfter = limiter.Exhausted, ends
	default:
		res.Granted = min(c.Want, left)
		next.used += res.Granted
	}
	shown := next
	if c.Op == limiter.Peek {
		shown = r
	}
	w.Granted = shown.used
	res.Windows = limiter.Windows{N: 1, Open: [limiter.MaxRates]limiter.OpenWindow{w}}
	res.Limit, res.Remaining = shown.most, shown.most-shown.used
	return next, res
}

// A strategy of your own is a Store whose Apply decides by another rule than
// limiter.Params.Step. Limiters lease from it as from any store, and storetest.RunStrategy
// holds it to what they rely on: see TestASlowStartKeepsTheRules.
func Example_strategy() {
	day := limiter.Instant(1_800_000_000*limiter.Second) + limiter.Instant(limiter.Second)
	counters := &slowStart{clock: func() limiter.Instant { return day }, counters: map[store.Key]ramp{}}
	config := twotier.Config{
		Scope:   store.Scope{Namespace: "shop", Policy: "checkout", Limit: "all"},
		Params:  limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 100, Window: limiter.Day}}},
		Size:    twotier.Size{Batch: 8},
		Holders: 2,
	}
	ctx := context.Background()
	for n := range 5 {
		admitted := 0
		for range 2 { // processes: each serves a part of the day
			process, err := twotier.New(config, counters)
			if err != nil {
				fmt.Println(err)
				return
			}
			for range 80 {
				if decision, err := process.Acquire(ctx, twotier.Request{Cost: 1}); err == nil && decision.Allowed {
					admitted++
				}
			}
			process.Close(ctx)
		}
		fmt.Println("day", n+1, "admits", admitted)
		day = day.Add(limiter.Day)
	}
	// Output:
	// day 1 admits 10
	// day 2 admits 20
	// day 3 admits 40
	// day 4 admits 80
	// day 5 admits 100
}

func TestASlowStartKeepsTheRules(t *testing.T) {
	storetest.RunStrategy(t, func(*testing.T) storetest.Strategy {
		now := limiter.Instant(1_800_000_000 * limiter.Second)
		s := &slowStart{clock: func() limiter.Instant { return now }, counters: map[store.Key]ramp{}}
		return storetest.Strategy{
			Store:    s,
			Params:   limiter.Params{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}},
			Most:     100,
			Advance:  func(d limiter.Micros) { now = now.Add(d) },
			Counters: func() int { return len(s.counters) },
		}
	})
}
