package escrowtest

import (
	"context"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Escrow is what is tested.
type Escrow interface {
	Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error)
}

// A Subject is one escrow that knows no budget, and what can be done to it.
type Subject struct {
	Escrow Escrow

	// Began is when the escrow's memory began, by its clock; 0 when that of each budget
	// begins with the first command.
	Began limiter.Instant
	// Advance blocks until the escrow's clock has moved by at least d.
	Advance func(d limiter.Micros)
	// Set sets the escrow's clock and stops it; nil when the test cannot. The instant
	// may be before the one that it shows.
	Set func(now limiter.Instant)
	// Forget holds, by name, the ways in which the escrow can lose what it knows while
	// it stays, or comes back, in service. Each returns the one that goes on.
	Forget map[string]func() Escrow
	// Keep holds, by name, the ways in which it is restarted and knows as much as before.
	// Each returns the one that goes on.
	Keep map[string]func() Escrow
	// Break makes the escrow unavailable for good; nil when nothing can.
	Break func()
}

// Run runs the suite. Each test starts a subject of its own.
func Run(t *testing.T, start func(t *testing.T) Subject) {
	for name, test := range map[string]func(*testing.T, *harness){
		"units are handed on up to what was granted":         testUnits,
		"units die with the window":                          testEnd,
		"the coordinator hears what was not released":        testRelease,
		"a slice opens windows without asking":               testSlice,
		"budgets do not see each other":                      testIsolation,
		"a memory that was lost is another escrow":           testForget,
		"a memory that was kept goes on":                     testKeep,
		"every answer is that of the core":                   testFollowsCore,
		"200 processes at once take no more than is granted": testParallel,
		"a call whose context is done is unavailable":        testCancelled,
		"a broken escrow is unavailable":                     testBroken,
		"a command that nobody may send is a plain error":    testInvalid,
	} {
		t.Run(name, func(t *testing.T) { test(t, &harness{start(t)}) })
	}
}
