package concurrency_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A service has at most 2 requests in flight, and another waits for up to a second.
func Example() {
	began := time.Now()
	shares := memory.New(memory.Options{
		Clock: func() limiter.Instant { return limiter.Instant(time.Since(began).Microseconds()) + 1 },
		Term:  1, First: true,
	})
	guard := concurrency.New(concurrency.Config{
		Key:    pool.Key{Namespace: "shop", Name: "checkout"},
		Holder: "checkout-7d9f-1",
		Params: pool.Params{
			Min: 2, Max: 2, Initial: 2,
			TTL: 30 * limiter.Second, Quarantine: 30 * limiter.Second, Generation: 1,
		},
		Law:       adaptive.Config{Algorithm: adaptive.Fixed, Max: 2},
		Slots:     slots.Config{Queue: slots.Queue{MaxLength: 1, MaxWait: limiter.Second}},
		Heartbeat: concurrency.Heartbeat{Interval: 10 * time.Second, MinInterval: 10 * time.Millisecond},
		Margin:    time.Second,
	}, shares)
	ctx := context.Background()
	defer guard.Close(ctx)

	request := concurrency.Request{Partition: slots.Rest}
	first, verdict := guard.Acquire(ctx, request)
	for verdict == concurrency.Unassigned { // until the coordinator has answered
		time.Sleep(time.Millisecond)
		first, verdict = guard.Acquire(ctx, request)
	}
	fmt.Println("the first request:", verdict)
	second, verdict := guard.Acquire(ctx, request)
	fmt.Println("the second:", verdict)
	go first.Release(concurrency.Served)
	third, verdict := guard.Acquire(ctx, request)
	fmt.Println("the third, once the first has ended:", verdict)
	second.Release(concurrency.Served)
	third.Release(concurrency.Served)
	// Output:
	// the first request: Admitted
	// the second: Admitted
	// the third, once the first has ended: Admitted
}
