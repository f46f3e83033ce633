package escrowtest

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Coordinator keeps the ledger of one budget, whose members share it first come,
// first served. It is not safe for concurrent use.
type Coordinator struct {
	params ledger.Params
	state  ledger.State
	term   int64
}

// NewCoordinator returns one that has remembered everything so far, of that many members:
// see Member.
func NewCoordinator(limit int64, window limiter.Micros, members int) *Coordinator {
	c := &Coordinator{term: 1, params: ledger.Params{
		Limit: limit, Window: window, Strategy: ledger.FirstCome, Slices: true,
	}}
	for i := range members {
		c.params.Members = append(c.params.Members, ledger.Member{Name: Member(i), Weight: 1, Borrowing: -1})
	}
	return c
}

// Member returns the name of a member, counted from 0 to 9.
func Member(i int) string { return fmt.Sprint("member-", i) }

// Slice says what each member is to use without asking from now on.
func (c *Coordinator) Slice(units int64) {
	for i := range c.params.Members {
		c.params.Members[i].Nominal, c.params.Members[i].Kept = units, units
	}
}

// Forget begins another term, which knows of the one before only how much was granted
// altogether.
func (c *Coordinator) Forget() { c.term++ }

// End returns when a window is over.
func (c *Coordinator) End(index int64) limiter.Instant {
	return limiter.Instant((index + 1) * int64(c.params.Window))
}

// Apply applies a command at an instant of the coordinator's clock.
func (c *Coordinator) Apply(now limiter.Instant, cmd ledger.Command) ledger.Grant {
	cmd.Memory.Term = c.term
	if err := cmd.Validate(); err != nil {
		panic(err)
	}
	var g ledger.Grant
	c.state, g = c.state.Step(c.params, now, cmd)
	return g
}
