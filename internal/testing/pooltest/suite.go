package pooltest

import (
	"context"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Coordinator is what is tested.
type Coordinator interface {
	Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error)
}

// A Subject is one coordinator that knows no pool, and what can be done to it.
type Subject struct {
	Coordinator Coordinator

	// Advance blocks until the coordinator's clock has moved by at least d.
	Advance func(d limiter.Micros)
	// Set sets the coordinator's clock and stops it; nil when the test cannot. The
	// instant may be before the one that it shows.
	Set func(now limiter.Instant)
	// Forget holds, by name, the ways in which the coordinator can lose what it knows
	// while it stays, or comes back, in service. Each returns the one that goes on.
	Forget map[string]func() Coordinator
	// Keep holds, by name, the ways in which it is replaced or restarted and knows as
	// much as before. Each returns the one that goes on.
	Keep map[string]func() Coordinator
	// Break makes the coordinator unavailable for good.
	Break func()
}

// Run runs the suite. Each test starts a subject of its own.
func Run(t *testing.T, start func(t *testing.T) Subject) {
	for name, test := range map[string]func(*testing.T, *harness){
		"a fleet shares the limit":                           testShares,
		"what a holder gave up is kept until it confirms":    testAcknowledged,
		"what a holder gave up goes on at once by occupancy": testOccupancy,
		"idle holders lend what they do not need":            testDemand,
		"the limit follows what holders infer":               testLimits,
		"a holder that leaves frees its share at once":       testLeave,
		"a share expires":                                    testExpiry,
		"a late or repeated command changes nothing":         testStale,
		"a process that starts again is another holder":      testRestartedHolder,
		"an overshoot is reported":                           testOvershoot,
		"pools do not see each other":                        testIsolation,
		"an older configuration changes nothing":             testGenerations,
		"a memory that was lost grants only what is held":    testForget,
		"a memory that was kept goes on":                     testKeep,
		"a holder that has seen a later share is not served": testBehind,
		"every answer is that of the core":                   testFollowsCore,
		"200 holders at once stay within the limit":          testParallel,
		"a call whose context is done is unavailable":        testCancelled,
		"a broken coordinator is unavailable":                testBroken,
		"a command that no holder may send is a plain error": testInvalid,
	} {
		t.Run(name, func(t *testing.T) { test(t, &harness{start(t)}) })
	}
}
