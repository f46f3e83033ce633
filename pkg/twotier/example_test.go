package twotier_test

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Two processes share a limit of 100 a day. They lease from one store, and admit no more than
// that together.
func Example() {
	noon := limiter.Instant(1_800_000_000 * limiter.Second)
	counters := memory.New(memory.Options{Clock: func() limiter.Instant { return noon }, First: true})
	config := twotier.Config{
		Scope:   store.Scope{Namespace: "shop", Policy: "checkout", Limit: "all"},
		Params:  limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 100, Window: limiter.Day}}},
		Size:    twotier.Size{Batch: 8},
		MaxKeys: 1,
		Holders: 2,
	}
	ctx := context.Background()
	admitted := 0
	for range 2 {
		process, err := twotier.New(config, counters)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer process.Close(ctx)
		for range 80 {
			decision, err := process.Acquire(ctx, twotier.Request{Cost: 1})
			if err != nil {
				fmt.Println(err)
				return
			}
			if decision.Allowed {
				admitted++
			}
		}
	}
	fmt.Println(admitted, "of 160 requests were admitted")
	// Output: 100 of 160 requests were admitted
}
