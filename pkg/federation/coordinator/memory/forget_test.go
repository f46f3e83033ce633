package memory_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// lease asks for 1 to 10 units of a budget of 10 each second.
func lease(t *testing.T, c *memory.Coordinator, id string, slices bool) ledger.Grant {
	t.Helper()
	p := ledger.Params{
		Limit: 10, Window: limiter.Second, Slices: slices,
		Members: []ledger.Member{{Name: "a", Weight: 1, Nominal: 5, Kept: 5, Borrowing: -1}},
	}
	g, err := c.Apply(t.Context(), id, p, ledger.Command{Op: ledger.Lease, Member: "a", Holder: "h", Seq: 1, Min: 1, Want: 5})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestBudgetsThatNobodyAsksForAreForgotten(t *testing.T) {
	now := suite.NewClock(suite.Start)
	c := memory.New(memory.Options{Clock: now.Now, Term: 1, First: true})
	lease(t, c, "gone", false)
	lease(t, c, "with a slice", true)
	now.Advance(limiter.MaxWindow)
	lease(t, c, "in time", false)
	if got := c.Len(); got != 3 {
		t.Errorf("%d budgets are kept, want 3", got)
	}
	now.Advance(1)
	lease(t, c, "another", false)
	if got := c.Len(); got != 3 {
		t.Errorf("%d budgets are kept, want 3 of 4", got)
	}
	if g := lease(t, c, "gone", false); g.Reason != ledger.Granted {
		t.Errorf("a budget that was forgotten comes back: %+v", g)
	}
}

// TestAForgottenBudgetIsNotServedAgain sets the clock back into a window whose grants are
// forgotten.
func TestAForgottenBudgetIsNotServedAgain(t *testing.T) {
	now := suite.NewClock(suite.Start)
	c := memory.New(memory.Options{Clock: now.Now, Term: 1, First: true})
	lease(t, c, "gone", false)
	now.Advance(limiter.MaxWindow + 1)
	lease(t, c, "another", false)
	now.Set(suite.Start)
	if g := lease(t, c, "gone", false); g.Reason != ledger.Amnesia {
		t.Errorf("got %+v", g)
	}
}
