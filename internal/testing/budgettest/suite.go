package budgettest

import (
	"context"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Coordinator is what is tested: a federation.Coordinator.
type Coordinator interface {
	Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error)
	Observe(ctx context.Context, id string) (ledger.State, error)
}

// A Subject is one coordinator that knows no budget, and what can be done to it.
type Subject struct {
	Coordinator Coordinator
	// Block is that of the parameters, of a coordinator whose state is not durable.
	Block int64
	// Memory returns what the coordinator remembers of its past where it keeps that
	// budget, which it was asked for before.
	Memory func(id string) ledger.Memory

	// Advance blocks until the coordinator's clock has moved by at least d.
	Advance func(d limiter.Micros)
	// Set sets the coordinator's clock and stops it; nil when the test cannot. The
	// instant may be before the one that it shows.
	Set func(now limiter.Instant)

	// Forget holds, by name, the ways in which the coordinator can lose what it knows
	// while it stays, or comes back, in service. Each returns the one that goes on.
	Forget map[string]func() Coordinator
	// Forfeit holds the ways in which it loses all but what was set aside.
	Forfeit map[string]func() Coordinator
	// Keep holds the ways in which it is replaced or restarted and knows as much as
	// before.
	Keep map[string]func() Coordinator

	// Break makes the coordinator unavailable for good; nil when nothing can.
	Break func()
	// Suspend lets it neither answer nor end until resume is called; nil when nothing
	// can.
	Suspend func() (resume func())
}

// Run runs the suite. Each test starts a subject of its own.
func Run(t *testing.T, start func(t *testing.T) Subject) {
	for name, test := range map[string]func(*testing.T, *harness){
		"members are granted the limit and no more":         testGrants,
		"units are handed out to the last":                  testLast,
		"a command that is sent again is answered again":    testRepeated,
		"an answer that was lost is sent again":             testLostAnswer,
		"a command that was overtaken changes nothing":      testReordered,
		"what a holder gives back goes to another":          testRelease,
		"a window begins with nothing granted":              testNextWindow,
		"what is given back too late is forfeited":          testForfeited,
		"reports and grants of windows that are over":       testReport,
		"of limits the smallest counts":                     testLimits,
		"another length waits for the open window to end":   testLengths,
		"budgets do not see each other":                     testIsolation,
		"strangers and crowds are turned away":              testStrangers,
		"a budget that nobody asked for is empty":           testUnknownBudget,
		"a memory that was lost grants nothing":             testForget,
		"a memory that was lost forfeits one block":         testForfeit,
		"a memory that was kept goes on":                    testKeep,
		"a first memory grants once all members vouch":      testVouched,
		"a later memory is not contradicted":                testLaterTerm,
		"a clock that is set back grants nothing":           testSetBack,
		"a clock that is set forward opens a window":        testSetForward,
		"every answer is that of the core":                  testFollowsCore,
		"many holders at once stay within the limit":        testParallel,
		"a call whose context is done is unavailable":       testCancelled,
		"a broken coordinator is unavailable":               testBroken,
		"a suspended coordinator is unavailable in time":    testSuspended,
		"a command that nobody may send is a plain error":   testInvalidCommand,
		"parameters that cannot be right are a plain error": testInvalidParams,
	} {
		t.Run(name, func(t *testing.T) { test(t, &harness{start(t)}) })
	}
}
