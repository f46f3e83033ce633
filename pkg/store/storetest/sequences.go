package storetest

import (
	"slices"
	"strconv"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A step is one command and what is expected of its answer.
type step struct {
	command            limiter.Command
	reason             limiter.Reason
	granted, remaining int64
}

// run runs commands in sequence.
func (h harness) run(t *testing.T, p limiter.Params, steps []step) {
	t.Helper()
	for i, s := range steps {
		res := h.apply(t, key(t.Name()), p, s.command)
		if res.Reason != s.reason || res.Granted != s.granted || res.Remaining != s.remaining {
			t.Fatalf("step %d, %+v: got %v, granted %d, remaining %d; want %v, %d, %d", i, s.command,
				res.Reason, res.Granted, res.Remaining, s.reason, s.granted, s.remaining)
		}
	}
}

// testSequences runs the same commands by every algorithm: in a moment, 5 in a
// window are 5 in a window.
func testSequences(t *testing.T, h harness) {
	const window = 4 * limiter.Second
	rates := []limiter.Rate{{Limit: 5, Window: window}}
	h.now(t)
	h.Advance(window + 2*limiter.Second)
	for algorithm, p := range map[string]limiter.Params{
		"a window":         fixed(1, 5, h.openWindow(t)),
		"a sliding window": {Generation: 1, Algorithm: limiter.SlidingWindow, Rates: rates, Buckets: 5},
		"a sliding log":    {Generation: 1, Algorithm: limiter.SlidingLog, Rates: rates},
		"a token bucket":   {Generation: 1, Algorithm: limiter.TokenBucket, Rates: rates},
		"GCRA":             {Generation: 1, Algorithm: limiter.GCRA, Rates: rates},
		"a leaky bucket":   {Generation: 1, Algorithm: limiter.LeakyBucket, Rates: rates, MaxDelay: window - window/5},
	} {
		for name, steps := range map[string][]step{
			"strict checks are granted until the limit": {
				{take(1, 1), limiter.Granted, 1, 4},
				{take(3, 3), limiter.Granted, 3, 1},
				{take(2, 2), limiter.Exhausted, 0, 1},
				{take(1, 1), limiter.Granted, 1, 0},
				{take(1, 1), limiter.Exhausted, 0, 0},
			},
			"the last lease is partial": {
				{take(1, 3), limiter.Granted, 3, 2},
				{take(1, 3), limiter.Granted, 2, 0},
				{take(1, 3), limiter.Exhausted, 0, 0},
			},
			"a lease below its minimum grants nothing": {
				{take(4, 4), limiter.Granted, 4, 1},
				{take(2, 5), limiter.Exhausted, 0, 1},
			},
			"a cost above the limit never fits": {
				{take(6, 6), limiter.TooLarge, 0, 5},
				{take(5, 50), limiter.Granted, 5, 0},
				{take(6, 6), limiter.TooLarge, 0, 0},
			},
		} {
			t.Run(algorithm+": "+name, func(t *testing.T) { h.run(t, p, steps) })
		}
	}
}

func testPeek(t *testing.T, h harness) {
	p := fixed(1, 5, h.openWindow(t))
	before := h.Counters()
	h.apply(t, key("never asked"), p, limiter.Command{Op: limiter.Peek, Min: 1, Want: 1})
	if got := h.Counters(); got > before {
		t.Errorf("a peek made a counter")
	}
	peek := limiter.Command{Op: limiter.Peek, Min: 2, Want: 4}
	h.run(t, p, []step{
		{peek, limiter.Granted, 4, 5},
		{peek, limiter.Granted, 4, 5},
		{take(4, 4), limiter.Granted, 4, 1},
		{peek, limiter.Exhausted, 0, 1},
		{take(1, 1), limiter.Granted, 1, 0},
	})
}

func testReset(t *testing.T, h harness) {
	p := fixed(1, 5, h.openWindow(t))
	h.run(t, p, []step{
		{take(5, 5), limiter.Granted, 5, 0},
		{limiter.Command{Op: limiter.Reset}, limiter.Granted, 0, 5},
		{take(5, 5), limiter.Granted, 5, 0},
	})
}

// testFirst lets three holders lease in one window, so that the first of them
// leaves the others their part of the next. It is tried again where the machine is too busy
// for three leases in a window.
func testFirst(t *testing.T, h harness) {
	const holders, limit, tries = 3, 30, 50
	window := limiter.Second / 5
	p := fixed(1, limit, window)
	lease := limiter.Command{Min: 1, Want: limit, First: true}
	for try := range tries {
		granted := make([]int64, 0, 2*holders)
		late := false // a lease came behind the window of the others
		for range 2 {
			end := p.Rates[0].WindowAt(h.now(t)).End()
			h.Advance(end.Sub(h.now(t)))
			for range holders {
				granted = append(granted, h.apply(t, key("fleet"+strconv.Itoa(try)), p, lease).Granted)
			}
			late = late || h.now(t) >= end.Add(window)
		}
		if late {
			continue
		}
		if want := []int64{10, 10, 10}; !slices.Equal(granted[holders:], want) {
			t.Errorf("holders are granted %d of %d, want %d", granted[holders:], limit, want)
		}
		return
	}
	t.Fatal("the machine is too slow for leases within a fifth of a second")
}

func testTenants(t *testing.T, h harness) {
	p := fixed(1, 100, h.openWindow(t))
	p.Fairness = limiter.Fairness{Default: 1, Weights: []limiter.Weight{{Tenant: "gold", Weight: 3}}, Reserve: true}
	ask := func(tenant string, low, high int64) limiter.Command {
		return limiter.Command{Min: low, Want: high, Tenant: tenant}
	}
	h.run(t, p, []step{
		{ask("a", 1, 99), limiter.Granted, 25, 0},
		{ask("a", 1, 1), limiter.Exhausted, 0, 0},
		{ask("b", 1, 99), limiter.Granted, 15, 0}, // of 20, for a had more than that before
		{ask("gold", 1, 59), limiter.Granted, 59, 1},
		{ask("gold", 3, 3), limiter.Exhausted, 0, 1},
		{ask("gold", 1, 3), limiter.Granted, 1, 0},
		{ask("c", 1, 1), limiter.Exhausted, 0, 0},
	})
	if res := h.apply(t, key(t.Name()), p, ask("gold", 1, 1)); res.Limit != 60 || res.RetryAfter != res.ExpiresIn {
		t.Errorf("a refused tenant gets %+v", res)
	}
	back := ask("c", 0, 1)
	back.Op, back.Windows = limiter.Return, h.apply(t, key(t.Name()), p, ask("c", 1, 1)).Windows
	if res := h.apply(t, key(t.Name()), p, back); res.Reason != limiter.Forfeited {
		t.Errorf("a tenant returns what it was never granted: %v of %d", res.Reason, res.Granted)
	}
	back.Tenant = "gold"
	if res := h.apply(t, key(t.Name()), p, back); res.Granted != 1 {
		t.Errorf("a tenant returns 1: %v of %d", res.Reason, res.Granted)
	}
}
