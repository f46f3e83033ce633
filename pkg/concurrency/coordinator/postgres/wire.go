package postgres

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// encode returns the arguments of weir.beat, in its order.
func encode(key pool.Key, p *pool.Params, c *pool.Command) []any {
	return []any{
		key.String(),
		[]int64{
			p.Min, p.Max, p.Initial, int64(p.Aggregate), int64(p.Allocation), int64(p.Handoff),
			int64(p.TTL), int64(p.Quarantine), p.Generation,
		},
		[]int64{int64(c.Op), c.Seq, c.Term, c.Applied, c.Held, c.InFlight, c.Peak, c.Limit},
		[]byte(c.Holder),
	}
}

// decode reads the reply of weir.beat.
func decode(reply []int64) (pool.Grant, error) {
	if len(reply) != 12 {
		return pool.Grant{}, fmt.Errorf("weir.beat answered %d integers, which is not a grant", len(reply))
	}
	return pool.Grant{
		Seq: reply[0], Term: reply[1], Generation: reply[2], Share: reply[3], TTL: limiter.Micros(reply[4]),
		Limit: reply[5], Holders: reply[6], Granted: reply[7], InFlight: reply[8],
		Occupied: reply[9], Bound: reply[10], Quarantined: limiter.Micros(reply[11]),
	}, nil
}
