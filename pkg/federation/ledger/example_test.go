package ledger_test

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Two regions share 100 units a minute, and 60 of them are kept for one of the two.
func ExampleState_Step() {
	params := ledger.Params{
		Limit: 100, Window: 60 * limiter.Second,
		Members: []ledger.Member{
			{Name: "eu", Weight: 1, Nominal: 60, Kept: 60, Borrowing: -1},
			{Name: "us", Weight: 1, Borrowing: -1},
		},
		Strategy: ledger.FirstCome,
	}
	var state ledger.State
	for _, c := range []ledger.Command{
		{Member: "us", Holder: "us-1", Seq: 1, Min: 1, Want: 80},
		{Member: "eu", Holder: "eu-1", Seq: 1, Min: 60, Want: 60},
	} {
		c.Op, c.Memory = ledger.Lease, ledger.Memory{Term: 1}
		var grant ledger.Grant
		state, grant = state.Step(params, 60_000_000, c)
		fmt.Printf("%s has %d of the window, %d are left\n", c.Member, grant.Granted, grant.Remaining)
	}
	// Output:
	// us has 40 of the window, 0 are left
	// eu has 60 of the window, 0 are left
}
