package federation_test

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Two regions share a budget of 100 a day by one coordinator. A region that closes gives back
// what it leased ahead, so the other one has the rest.
func Example() {
	noon := limiter.Instant(1_800_000_000 * limiter.Second)
	hub := memory.New(memory.Options{Clock: func() limiter.Instant { return noon }, Term: 1, First: true})
	params := ledger.Params{
		Limit: 100, Window: limiter.Day,
		Members: []ledger.Member{{Name: "eu", Weight: 1, Borrowing: -1}, {Name: "us", Weight: 1, Borrowing: -1}},
	}
	limit := limiter.Params{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Day}}}
	ctx := context.Background()
	for _, member := range []string{"eu", "us"} {
		region := federation.New(federation.Config{ID: "shop/checkout", Member: member, Params: params}, hub, nil)
		admitted := int64(0)
		for range 60 {
			result, err := region.Apply(ctx, key, limit, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
			if err != nil {
				fmt.Println(err)
				return
			}
			admitted += result.Granted
		}
		region.Close(ctx)
		fmt.Printf("%s admitted %d of 60\n", member, admitted)
	}
	// Output:
	// eu admitted 60 of 60
	// us admitted 40 of 60
}
