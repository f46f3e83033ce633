package limiter_test

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A window of a second grants no more than its limit, and the next one begins with all of it.
func ExampleParams_Step() {
	params := limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}}
	take := limiter.Command{Op: limiter.Take, Min: 1, Want: 6}

	var state limiter.State
	for _, now := range []limiter.Instant{5_000_000, 5_100_000, 5_200_000, 6_000_000} {
		var result limiter.Result
		state, result = params.Step(state, now, take)
		fmt.Printf("%d granted, %d left (%s)\n", result.Granted, result.Remaining, result.Reason)
	}
	// Output:
	// 6 granted, 4 left (Granted)
	// 4 granted, 0 left (Granted)
	// 0 granted, 0 left (Exhausted)
	// 6 granted, 4 left (Granted)
}
