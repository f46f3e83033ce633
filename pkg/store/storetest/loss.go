package storetest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

func testMemoryBegins(t *testing.T, h harness) {
	p := fixed(1, 5, limiter.MaxWindow)
	res := h.apply(t, key("old"), p, take(1, 1))
	if res.Reason != limiter.Amnesia || res.RetryAfter != res.Windows.Open[0].End().Sub(res.Now) {
		t.Errorf("in a window older than the store: got %v, retry after %d", res.Reason, res.RetryAfter)
	}
}

// testForget loses what the store knows and asks for more than is left.
func testForget(t *testing.T, h harness) {
	if len(h.Forget) == 0 {
		t.Fatal("the subject names no way to forget")
	}
	const window = 2 * limiter.Second
	rates := []limiter.Rate{{Limit: 5, Window: window}}
	algorithms := map[string]limiter.Params{
		"a sliding window": {Algorithm: limiter.SlidingWindow, Rates: rates, Buckets: 5, Lifetime: window / 10},
		"a sliding log":    {Algorithm: limiter.SlidingLog, Rates: rates},
		"a token bucket":   {Algorithm: limiter.TokenBucket, Rates: rates},
		"a leaky bucket":   {Algorithm: limiter.LeakyBucket, Rates: rates, MaxDelay: window},
	}
	for how, forget := range h.Forget {
		t.Run(how, func(t *testing.T) {
			h.now(t)
			h.Advance(window + window/2)
			for name, p := range algorithms {
				p.Generation = 1
				if res := h.apply(t, key(how+name), p, take(5, 5)); res.Granted != 5 {
					t.Fatalf("%s before: got %v of %d, want 5", name, res.Reason, res.Granted)
				}
			}
			p := fixed(1, 5, h.openWindow(t))
			if res := h.apply(t, key(how), p, take(1, 3)); res.Granted != 3 {
				t.Fatalf("a window before: got %v of %d, want 3", res.Reason, res.Granted)
			}

			h.Store = forget()
			h := harness{h.Subject}
			if res := h.apply(t, key(how), p, take(1, 5)); res.Reason != limiter.Amnesia || res.Granted != 0 {
				t.Errorf("in the window of the loss: got %v of %d, want nothing", res.Reason, res.Granted)
			}
			for name, p := range algorithms {
				p.Generation = 1
				if res := h.apply(t, key(how+name), p, take(4, 5)); res.Granted != 0 {
					t.Errorf("%s after the loss: got %d, want nothing", name, res.Granted)
				}
			}
			p = fixed(1, 5, h.openWindow(t))
			if res := h.apply(t, key(how+" after"), p, take(5, 5)); res.Granted != 5 {
				t.Errorf("in the first window after it: got %v of %d, want 5", res.Reason, res.Granted)
			}
			h.Advance(window + window/2)
			for name, p := range algorithms {
				p.Generation = 1
				if res := h.apply(t, key(how+name), p, take(5, 5)); res.Granted != 5 {
					t.Errorf("%s when nothing of before counts: got %v of %d, want 5", name, res.Reason, res.Granted)
				}
			}
		})
	}
}

// testStepBack repeats the instants of a window that was spent.
func testStepBack(t *testing.T, h harness) {
	if h.StepBack == nil {
		t.Skip("the subject's clock cannot step back")
	}
	const window = limiter.Second
	h.now(t)
	h.Advance(3 * window)
	sliding := limiter.Params{Generation: 1, Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{{Limit: 5, Window: window}}}
	bucket := limiter.Params{Generation: 1, Algorithm: limiter.TokenBucket, Rates: sliding.Rates}
	all := map[string]limiter.Params{"window": fixed(1, 5, window), "sliding": sliding, "bucket": bucket}
	for name, p := range all {
		if res := h.apply(t, key(name), p, take(5, 5)); res.Granted != 5 {
			t.Fatalf("%s before: got %v of %d, want 5", name, res.Reason, res.Granted)
		}
	}
	h.StepBack(2 * window)
	for name, p := range all {
		if res := h.apply(t, key(name), p, take(1, 5)); res.Granted != 0 || res.RetryAfter == 0 {
			t.Errorf("%s after the step: got %v of %d", name, res.Reason, res.Granted)
		}
	}
	h.Advance(4 * window)
	for name, p := range all {
		if res := h.apply(t, key(name), p, take(5, 5)); res.Granted != 5 {
			t.Errorf("%s when the clock has caught up: got %v of %d, want 5", name, res.Reason, res.Granted)
		}
	}
}
