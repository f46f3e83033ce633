package pool_test

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Two holders share a limit of 10 requests in flight. The second gets its part once the first
// has confirmed that it uses no more than the rest.
func ExampleState_Step() {
	params := pool.Params{
		Min: 1, Max: 10, Initial: 10,
		TTL: 3 * limiter.Second, Quarantine: 3 * limiter.Second, Generation: 1,
	}
	state := pool.New(1)
	beat := func(now limiter.Instant, c pool.Command) pool.Grant {
		c.Op = pool.Beat
		grant, err := state.Step(params, now, c)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%s may have %d in flight\n", c.Holder, grant.Share)
		return grant
	}
	first := beat(1_000_000, pool.Command{Holder: "a", Seq: 1})
	beat(1_100_000, pool.Command{Holder: "b", Seq: 1})
	first = beat(1_200_000, pool.Command{Holder: "a", Seq: 2, Term: first.Term, Applied: first.Generation, Held: first.Share})
	beat(1_300_000, pool.Command{Holder: "a", Seq: 3, Term: first.Term, Applied: first.Generation, Held: first.Share})
	beat(1_400_000, pool.Command{Holder: "b", Seq: 2})
	// Output:
	// a may have 10 in flight
	// b may have 0 in flight
	// a may have 5 in flight
	// a may have 5 in flight
	// b may have 5 in flight
}
