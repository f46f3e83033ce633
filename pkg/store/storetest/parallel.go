package storetest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// testParallel runs 200 takes and 200 leases at once against limits of 50 of every
// algorithm.
func testParallel(t *testing.T, h harness) {
	const limit = 50
	h.now(t)
	window := 2 * limiter.Second
	h.Advance(window + Settle)
	rates := []limiter.Rate{{Limit: limit, Window: window}}
	for name, p := range map[string]limiter.Params{
		"a window":                {Rates: []limiter.Rate{{Limit: limit, Window: h.openWindow(t)}}},
		"a sliding window":        {Algorithm: limiter.SlidingWindow, Rates: rates, Buckets: 7},
		"a sliding log":           {Algorithm: limiter.SlidingLog, Rates: rates},
		"a token bucket":          {Algorithm: limiter.TokenBucket, Rates: rates},
		"GCRA":                    {Algorithm: limiter.GCRA, Rates: rates},
		"a leaky bucket":          {Algorithm: limiter.LeakyBucket, Rates: rates, MaxDelay: window - window/limit},
		"one of two rates":        {Any: true, Rates: []limiter.Rate{{Limit: limit, Window: h.openWindow(t)}, {Limit: 3, Window: h.openWindow(t) - 1}}},
		"a window without tenant": {Rates: []limiter.Rate{{Limit: limit, Window: h.openWindow(t)}}, Fairness: limiter.Fairness{Default: 1}},
	} {
		p.Generation = 1
		t.Run(name, func(t *testing.T) {
			h.race(t, p, take(1, 1), limit)
			h.race(t, p, take(1, 8), limit)
		})
	}
}

// race runs a command 200 times at once, and expects the limit to be granted and, beyond it,
// at most what a bucket drains meanwhile, or what further windows of a busy machine admit.
func (h harness) race(t *testing.T, p limiter.Params, c limiter.Command, limit int64) {
	t.Helper()
	const callers = 200
	k := key(t.Name() + string(rune('0'+c.Want)))
	first := h.apply(t, k, p, c)
	last := atomic.Int64{}
	granted := atomic.Int64{}
	granted.Add(first.Granted)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			res, err := h.Store.Apply(t.Context(), k, p, c)
			if err != nil {
				t.Errorf("Apply: %v", err)
			}
			granted.Add(res.Granted)
			for was := last.Load(); was < int64(res.Now) && !last.CompareAndSwap(was, int64(res.Now)); was = last.Load() {
			}
		})
	}
	wg.Wait()
	most := limit
	switch p.Algorithm {
	case limiter.TokenBucket, limiter.GCRA, limiter.LeakyBucket:
		most += (last.Load() - int64(first.Now)) * limit / int64(p.Rates[0].Window)
	case limiter.SlidingWindow, limiter.SlidingLog:
		most += (last.Load() - int64(first.Now)) / int64(p.Rates[0].Window) * limit
	default:
	}
	if got := granted.Load(); got < limit || got > most {
		t.Errorf("granted %d, want %d to %d", got, limit, most)
	}
}
