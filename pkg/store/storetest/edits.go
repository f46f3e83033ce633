package storetest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

func testGenerations(t *testing.T, h harness) {
	window := h.openWindow(t)
	k := key("edited")
	h.apply(t, k, fixed(3, 5, window), take(1, 4))
	if res := h.apply(t, k, fixed(4, 8, window), take(1, 9)); res.Granted != 4 {
		t.Errorf("a raised limit grants %d beside the 4 of before, want 4", res.Granted)
	}
	if res := h.apply(t, k, fixed(3, 5, window), take(1, 1)); res.Reason != limiter.StaleGeneration {
		t.Errorf("an older generation: got %v", res.Reason)
	}
	shorter := fixed(5, 100, limiter.MinWindow)
	if res := h.apply(t, k, shorter, take(1, 1)); res.Reason != limiter.Exhausted {
		t.Errorf("a new length of window beside a spent one: got %v of %d, want it to wait", res.Reason, res.Granted)
	}
}

// testSince has a store hear that it took the limit over a moment ago.
func testSince(t *testing.T, h harness) {
	p := fixed(1, 5, h.openWindow(t))
	h.Advance(limiter.Millisecond)
	p.Since = h.now(t)
	if res := h.apply(t, key("window"), p, take(1, 1)); res.Reason != limiter.Amnesia {
		t.Errorf("in a window that began before: got %v", res.Reason)
	}
	p.Rates[0].Window = h.openWindow(t)
	if res := h.apply(t, key("later window"), p, take(1, 1)); res.Granted != 1 {
		t.Errorf("in a window that began after: got %v", res.Reason)
	}
	h.Advance(Settle)
	short := []limiter.Rate{{Limit: 5, Window: limiter.Second / 2}}
	for name, p := range map[string]limiter.Params{
		"a sliding window": {Algorithm: limiter.SlidingWindow, Rates: short, Buckets: 5},
		"a sliding log":    {Algorithm: limiter.SlidingLog, Rates: short},
		"a token bucket":   {Algorithm: limiter.TokenBucket, Rates: short},
		"a leaky bucket":   {Algorithm: limiter.LeakyBucket, Rates: short, MaxDelay: limiter.Second / 2},
	} {
		p.Generation, p.Since = 1, h.now(t)
		if res := h.apply(t, key(name), p, take(5, 5)); res.Granted != 0 {
			t.Errorf("%s grants %d of what another store may have granted", name, res.Granted)
		}
		h.Advance(limiter.Second)
		if res := h.apply(t, key(name), p, take(5, 5)); res.Granted != 5 {
			t.Errorf("%s when nothing of before counts: got %v", name, res.Reason)
		}
	}
}
