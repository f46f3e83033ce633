package storetest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// testExpiry leaves counters of every algorithm alone until they are dropped.
func testExpiry(t *testing.T, h harness) {
	rates := []limiter.Rate{{Limit: 5, Window: limiter.MinWindow}}
	h.now(t)
	h.Advance(3 * limiter.MinWindow)
	before := h.Counters()
	for name, p := range map[string]limiter.Params{
		"a window":         {Rates: rates},
		"tenants":          {Rates: rates, Fairness: limiter.Fairness{Default: 1}},
		"a sliding window": {Algorithm: limiter.SlidingWindow, Rates: rates, Buckets: 5},
		"a sliding log":    {Algorithm: limiter.SlidingLog, Rates: rates},
		"a token bucket":   {Algorithm: limiter.TokenBucket, Rates: rates},
		"a leaky bucket":   {Algorithm: limiter.LeakyBucket, Rates: rates, MaxDelay: limiter.MinWindow},
	} {
		p.Generation = 1
		h.apply(t, key(name), p, take(1, 1))
		h.apply(t, key(name), p, take(100, 100))
	}
	if got := h.Counters(); got < before+6-1 || got > before+6 { // the one of before may have ended
		t.Fatalf("%d counters after calls for 6 keys, %d before", got, before)
	}
	h.Advance(4*limiter.MinWindow + h.Late)
	for range 100 { // calls may drop a few each
		h.apply(t, key("later"), fixed(1, 5, limiter.MinWindow), take(1, 1))
		if h.Refresh != nil {
			h.Refresh()
		}
	}
	if got := h.Counters(); got != 1 {
		t.Errorf("%d counters after two windows in which only 1 was used", got)
	}
}
