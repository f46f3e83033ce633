package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Store is what is tested.
type Store interface {
	Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
}

// A Subject is one empty store and what can be done to it.
type Subject struct {
	Store Store

	// Advance blocks until the store's clock has moved by at least d.
	Advance func(d limiter.Micros)
	// Forget holds, by name, the ways in which the store can lose what it knows
	// while it stays, or comes back, in service. Each returns the store to go on with.
	Forget map[string]func() Store
	// Break makes the store unavailable for good.
	Break func()
	// Counters returns how many counters the store keeps.
	Counters func() int
}

// Run runs the suite. Each test starts a subject of its own.
func Run(t *testing.T, start func(t *testing.T) Subject) {
	for name, test := range map[string]func(*testing.T, harness){
		"every answer is that of Step":                          testFollowsStep,
		"commands in sequence":                                  testSequences,
		"parallel takes admit exactly the limit":                testParallelTakes,
		"parallel leases grant exactly the limit":               testParallelLeases,
		"a return is applied once and only in its window":       testReturns,
		"counters do not see each other":                        testIsolation,
		"windows that began before the memory grant nothing":    testMemoryBegins,
		"what was granted before a loss is not granted again":   testForget,
		"ended counters are dropped":                            testExpiry,
		"a call whose context is done is unavailable":           testCancelled,
		"a broken store is unavailable":                         testBroken,
		"a command that no caller may send is a plain error":    testInvalid,
		"a new generation finds the count and the old is stale": testGenerations,
	} {
		t.Run(name, func(t *testing.T) { test(t, harness{start(t)}) })
	}
}

// A harness adds to a subject what the tests have in common.
type harness struct{ Subject }

func key(hash string) store.Key {
	return store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: hash}
}

func take(low, high int64) limiter.Command { return limiter.Command{Min: low, Want: high} }

func giveBack(amount int64, w limiter.Windows) limiter.Command {
	return limiter.Command{Op: limiter.Return, Want: amount, Windows: w}
}

func fixed(generation, limit int64, window limiter.Micros) limiter.Params {
	return limiter.Params{Generation: generation, Rates: []limiter.Rate{{Limit: limit, Window: window}}}
}

// apply runs a command that must be answered.
func (h harness) apply(t *testing.T, k store.Key, p limiter.Params, c limiter.Command) limiter.Result {
	t.Helper()
	res, err := h.Store.Apply(t.Context(), k, p, c)
	if err != nil {
		t.Fatalf("Apply(%s, %+v, %+v): %v", k, p, c, err)
	}
	return res
}

// now asks the store for its time.
func (h harness) now(t *testing.T) limiter.Instant {
	t.Helper()
	return h.apply(t, key("clock"), fixed(1, 1, limiter.MinWindow), take(1, 1)).Now
}

// openWindow returns the length of a window that has just begun, inside the
// store's memory, and that ends long after the test. Lengths just below the
// longest have a boundary every millisecond; the one after next is waited for.
func (h harness) openWindow(t *testing.T) limiter.Micros {
	t.Helper()
	const lead = 2 * limiter.Millisecond
	h.now(t) // a store may begin its memory with its first call
	now := h.now(t)
	index := int64(now)/int64(limiter.MaxWindow) + 1
	length := (int64(now.Add(lead)) + index - 1) / index
	h.Advance(limiter.Instant(index * length).Sub(now))
	return limiter.Micros(length)
}

// isUnavailable fails the test unless err is the one that failure actions act on.
func isUnavailable(t *testing.T, err error) {
	t.Helper()
	var unavailable *store.UnavailableError
	if !errors.As(err, &unavailable) {
		t.Fatalf("error is %v (%T), want a *store.UnavailableError", err, err)
	}
	if unavailable.Store == "" || unavailable.Cause == nil {
		t.Errorf("error %#v names no store or no cause", unavailable)
	}
}

func testSequences(t *testing.T, h harness) {
	type step struct {
		command            limiter.Command
		reason             limiter.Reason
		granted, remaining int64
	}
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
		t.Run(name, func(t *testing.T) {
			p := fixed(1, 5, h.openWindow(t))
			for i, s := range steps {
				res := h.apply(t, key(name), p, s.command)
				if res.Reason != s.reason || res.Granted != s.granted || res.Remaining != s.remaining {
					t.Fatalf("step %d, %+v: got %v, granted %d, remaining %d; want %v, %d, %d", i, s.command,
						res.Reason, res.Granted, res.Remaining, s.reason, s.granted, s.remaining)
				}
			}
		})
	}
}

func testParallelTakes(t *testing.T, h harness) { h.race(t, take(1, 1)) }

func testParallelLeases(t *testing.T, h harness) { h.race(t, take(1, 8)) }

// race runs a command 200 times at once against a limit of 50.
func (h harness) race(t *testing.T, c limiter.Command) {
	const callers, limit = 200, 50
	p := fixed(1, limit, h.openWindow(t))
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			res, err := h.Store.Apply(t.Context(), key("race"), p, c)
			if err != nil {
				t.Errorf("Apply: %v", err)
			}
			granted.Add(res.Granted)
		})
	}
	wg.Wait()
	if got := granted.Load(); got != limit {
		t.Errorf("granted %d in one window, want %d", got, limit)
	}
}

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

func testIsolation(t *testing.T, h harness) {
	p := fixed(1, 1, h.openWindow(t))
	base := store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}
	keys := []store.Key{{Scope: base}, {Scope: base, Hash: store.HashValue("a")}, {Scope: base, Hash: store.HashValue("b")}}
	for _, change := range []func(*store.Scope){
		func(s *store.Scope) { s.Cluster = "other" },
		func(s *store.Scope) { s.Namespace = "other" },
		func(s *store.Scope) { s.Policy = "other" },
		func(s *store.Scope) { s.Limit = "other" },
	} {
		scope := base
		change(&scope)
		keys = append(keys, store.Key{Scope: scope})
	}
	for _, k := range keys {
		if res := h.apply(t, k, p, take(1, 1)); res.Granted != 1 {
			t.Errorf("%s: got %v, want its own budget", k, res.Reason)
		}
	}
}

func testMemoryBegins(t *testing.T, h harness) {
	p := fixed(1, 5, limiter.MaxWindow)
	res := h.apply(t, key("old"), p, take(1, 1))
	if res.Reason != limiter.Amnesia || res.RetryAfter != res.Windows.Open[0].End().Sub(res.Now) {
		t.Errorf("in a window older than the store: got %v, retry after %d", res.Reason, res.RetryAfter)
	}
}

func testForget(t *testing.T, h harness) {
	if len(h.Forget) == 0 {
		t.Fatal("the subject names no way to forget")
	}
	for name, forget := range h.Forget {
		t.Run(name, func(t *testing.T) {
			p := fixed(1, 5, h.openWindow(t))
			if res := h.apply(t, key(name), p, take(1, 3)); res.Granted != 3 {
				t.Fatalf("before: got %v of %d, want 3", res.Reason, res.Granted)
			}
			h := harness{h.Subject}
			h.Store = forget()
			if res := h.apply(t, key(name), p, take(1, 5)); res.Reason != limiter.Amnesia || res.Granted != 0 {
				t.Errorf("in the window of the loss: got %v of %d, want nothing", res.Reason, res.Granted)
			}
			p = fixed(1, 5, h.openWindow(t))
			if res := h.apply(t, key(name+" after"), p, take(5, 5)); res.Granted != 5 {
				t.Errorf("in the first window after it: got %v of %d, want 5", res.Reason, res.Granted)
			}
		})
	}
}

func testExpiry(t *testing.T, h harness) {
	p := fixed(1, 5, limiter.MinWindow)
	for _, hash := range []string{"a", "b", "c", "d"} {
		h.apply(t, key(hash), p, take(1, 1))
	}
	if got := h.Counters(); got != 4 {
		t.Fatalf("%d counters after calls for 4 keys", got)
	}
	h.Advance(3 * limiter.MinWindow)
	for range 100 { // calls may drop a few each
		h.apply(t, key("later"), p, take(1, 1))
	}
	if got := h.Counters(); got != 1 {
		t.Errorf("%d counters after two windows in which only 1 was used", got)
	}
}

func testCancelled(t *testing.T, h harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Store.Apply(ctx, key("a"), fixed(1, 1, limiter.Second), take(1, 1))
	isUnavailable(t, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap context.Canceled", err)
	}
}

func testBroken(t *testing.T, h harness) {
	h.now(t)
	h.Break()
	_, err := h.Store.Apply(t.Context(), key("a"), fixed(1, 1, limiter.Second), take(1, 1))
	isUnavailable(t, err)
}

func testInvalid(t *testing.T, h harness) {
	valid := fixed(1, 5, limiter.Second)
	for name, call := range map[string]struct {
		params  limiter.Params
		command limiter.Command
	}{
		"nothing wanted":         {valid, take(0, 0)},
		"a negative amount":      {valid, take(1, -5)},
		"less wanted than least": {valid, take(3, 2)},
		"a negative return":      {valid, giveBack(-5, limiter.Windows{})},
		"an unknown operation":   {valid, limiter.Command{Op: limiter.Reset + 1, Min: 1, Want: 1}},
		"windows out of bounds":  {valid, giveBack(1, limiter.Windows{N: limiter.MaxRates + 1})},
		"no rates":               {limiter.Params{Generation: 1}, take(1, 1)},
		"too many rates":         {limiter.Params{Rates: make([]limiter.Rate, limiter.MaxRates+1)}, take(1, 1)},
		"a negative generation":  {fixed(-1, 5, limiter.Second), take(1, 1)},
	} {
		_, err := h.Store.Apply(t.Context(), key("a"), call.params, call.command)
		var unavailable *store.UnavailableError
		if err == nil || errors.As(err, &unavailable) {
			t.Errorf("%s: error is %v, want a plain one", name, err)
		}
	}
}

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

// diff compares a result with the one that Step gives for the same instant.
func diff(want, got limiter.Result) string { return cmp.Diff(want, got) }
