package postgres

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// encode returns the arguments of weir.step, in its order.
func encode(id string, p *ledger.Params, c *ledger.Command) []any {
	n := len(p.Members)
	names := make([][]byte, n)
	lists := make([]int64, 5*n)
	weight, nominal, kept, borrowing, meant := lists[:n], lists[n:2*n], lists[2*n:3*n], lists[3*n:4*n], lists[4*n:]
	for i, m := range p.Members {
		names[i] = []byte(m.Name)
		weight[i], nominal[i], kept[i], borrowing[i] = m.Weight, m.Nominal, m.Kept, m.Borrowing
		if p.Slices {
			meant[i] = m.Kept
		}
	}
	usage := make([][]int64, 0, len(c.Usage))
	for _, u := range c.Usage {
		usage = append(usage, []int64{u.Index, u.Admitted, u.Refused, flag(u.Complete)})
	}
	return []any{
		[]byte(id),
		[]int64{p.Limit, int64(p.Window), int64(p.Strategy)},
		names, weight, nominal, kept, borrowing, meant,
		[]int64{int64(c.Op), c.Seq, c.Epoch.Index, c.Epoch.Term, c.Granted, c.Min, c.Want, c.Demand, c.Weight, c.Slice, c.Born, c.List, c.Tenants.Met, c.Tenants.Unmet},
		[]byte(c.Member),
		[]byte(c.Holder),
		usage,
	}
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// decodeGrant reads the reply of weir.step.
func decodeGrant(reply []int64) (ledger.Grant, error) {
	if len(reply) != 12 {
		return ledger.Grant{}, fmt.Errorf("weir.step answered %d integers, which is not a grant", len(reply))
	}
	return ledger.Grant{
		Reason: ledger.Reason(reply[0]), Seq: reply[1], Epoch: ledger.Epoch{Index: reply[2], Term: reply[3]},
		Granted: reply[4], Slice: reply[5], NowSlice: reply[6], Limit: reply[7], Remaining: reply[8],
		ExpiresIn: limiter.Micros(reply[9]), RetryAfter: limiter.Micros(reply[10]), Now: limiter.Instant(reply[11]),
	}, nil
}
