package memory_test

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// Counters in the memory of a process that others do not share.
func ExampleNew() {
	now := limiter.Instant(1_800_000_000 * limiter.Second)
	counters := memory.New(memory.Options{Clock: func() limiter.Instant { return now }, First: true})
	params := limiter.Params{Rates: []limiter.Rate{{Limit: 3, Window: limiter.Second}}}
	for _, tenant := range []string{"blue", "blue", "red"} {
		key := store.Key{Scope: store.Scope{Namespace: "shop", Policy: "checkout", Limit: "by-tenant"}, Hash: store.HashValue(tenant)}
		result, err := counters.Apply(context.Background(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 2})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s was granted %d\n", tenant, result.Granted)
	}
	// Output:
	// blue was granted 2
	// blue was granted 1
	// red was granted 2
}
