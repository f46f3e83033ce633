package storetest

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

func testReturns(t *testing.T, h harness) {
	window := h.openWindow(t)
	p := fixed(1, 5, window)
	grant := h.apply(t, key("return"), p, take(1, 5))

	other := grant.Windows
	other.Open[0].Index--
	for name, c := range map[string]limiter.Command{
		"of an earlier window":   giveBack(1, other),
		"of more than granted":   giveBack(6, grant.Windows),
		"of no window":           giveBack(1, limiter.Windows{}),
		"of several windows":     giveBack(1, limiter.Windows{N: 2, Open: grant.Windows.Open}),
		"of unimaginable amount": giveBack(1<<62, grant.Windows),
	} {
		if res := h.apply(t, key("return"), p, c); res.Reason != limiter.Forfeited || res.Granted != 0 {
			t.Errorf("a return %s: got %v of %d, want it forfeited", name, res.Reason, res.Granted)
		}
	}
	if res := h.apply(t, key("return"), p, giveBack(2, grant.Windows)); res.Reason != limiter.Granted || res.Granted != 2 {
		t.Fatalf("a return in its window: got %v of %d, want 2 granted", res.Reason, res.Granted)
	}
	if res := h.apply(t, key("return"), p, take(1, 5)); res.Granted != 2 {
		t.Errorf("after 2 came back a lease got %d", res.Granted)
	}
}

// testReturnsByTime gives back what algorithms without windows granted.
func testReturnsByTime(t *testing.T, h harness) {
	h.now(t)
	window := limiter.Second / 2
	h.Advance(window + Settle)
	rates := []limiter.Rate{{Limit: 5, Window: window}}
	for name, p := range map[string]limiter.Params{
		"a sliding window": {Algorithm: limiter.SlidingWindow, Rates: rates, Buckets: 5, Lifetime: window},
		"a sliding log":    {Algorithm: limiter.SlidingLog, Rates: rates},
		"a token bucket":   {Algorithm: limiter.TokenBucket, Rates: rates},
	} {
		t.Run(name, func(t *testing.T) {
			p.Generation = 1
			const attempts = 20
			for attempt := range attempts {
				k := key(fmt.Sprint(name, attempt))
				grant := h.apply(t, k, p, take(5, 5))
				if grant.Granted != 5 {
					t.Fatalf("the first take: %+v", grant)
				}
				back := giveBack(2, grant.Windows)
				at := map[string]limiter.Instant{"the future": grant.Now.Add(window), "long ago": grant.Now.Add(-window)}
				for what := range at {
					back.At = at[what]
					if res := h.apply(t, k, p, back); res.Reason != limiter.Forfeited && res.Now < at["the future"] {
						t.Errorf("a return of %s: got %v", what, res.Reason)
					}
				}
				back.At = grant.Now
				res := h.apply(t, k, p, back)
				if res.Granted != 2 && res.Now.Sub(grant.Now) >= window/5 && attempt < attempts-1 {
					continue // the machine was so busy that part of the grant counts no more
				}
				if res.Granted != 2 {
					t.Errorf("a return of the grant: got %v of %d", res.Reason, res.Granted)
				}
				h.Advance(2*window + window/5 + p.Lifetime)
				if res := h.apply(t, k, p, back); res.Reason != limiter.Forfeited {
					t.Errorf("a return of what counts no more: got %v", res.Reason)
				}
				return
			}
		})
	}
}
