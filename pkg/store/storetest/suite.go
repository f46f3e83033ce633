package storetest

import (
	"context"
	"testing"

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
	// StepBack moves the store's clock back; nil when the test cannot.
	StepBack func(d limiter.Micros)
	// Refresh does what is done in every few seconds of a store that is in use; nil
	// when that is nothing.
	Refresh func()
	// Counters returns how many counters the store keeps.
	Counters func() int
	// Late is how long after their end counters may still be there; 0 for none.
	Late limiter.Micros
}

// Run runs the suite. Each test starts a subject of its own.
func Run(t *testing.T, start func(t *testing.T) Subject) {
	for name, test := range map[string]func(*testing.T, harness){
		"every answer is that of Step":                          testFollowsStep,
		"many callers see one order of answers":                 testLinearizable,
		"commands in sequence":                                  testSequences,
		"parallel calls admit exactly the limit":                testParallel,
		"a return is applied once and only in its window":       testReturns,
		"a return counts while its grant does":                  testReturnsByTime,
		"a peek changes nothing":                                testPeek,
		"a reset forgets what was granted":                      testReset,
		"a reset of a limit sets back its counters alone":       testResetLimit,
		"holders guide each other's grants":                     testFirst,
		"tenants keep their guarantees":                         testTenants,
		"a store that takes over knows nothing of before":       testSince,
		"counters do not see each other":                        testIsolation,
		"windows that began before the memory grant nothing":    testMemoryBegins,
		"what was granted before a loss is not granted again":   testForget,
		"a clock that steps back grants nothing twice":          testStepBack,
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
