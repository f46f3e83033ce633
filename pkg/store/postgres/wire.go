package postgres

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// encode returns the arguments of weir.step, in its order.
func encode(key string, p limiter.Params, c limiter.Command) []any {
	rates := make([]int64, 0, 5*len(p.Rates))
	for _, r := range p.Rates {
		rates = append(rates, r.Limit, int64(r.Window), r.Burst, int64(r.Offset), flag(r.Monthly))
	}
	windows := []int64{}
	if c.Op == limiter.Return {
		for _, w := range c.Windows.Slice() {
			windows = append(windows, w.Limit, int64(w.Window), int64(w.Offset), flag(w.Monthly), w.Index)
		}
	}
	tenants, weights := make([]string, len(p.Fairness.Weights)), make([]int64, len(p.Fairness.Weights))
	for i, w := range p.Fairness.Weights {
		tenants[i], weights[i] = w.Tenant, w.Weight
	}
	born := make([]int64, len(p.Retention.Born))
	for i, id := range p.Retention.Born {
		born[i] = int64(id)
	}
	return []any{
		key, int64(c.Op), c.Min, c.Want, c.Tenant, windows, int64(c.At), c.First,
		p.Generation, int64(p.Algorithm), rates, p.Any, p.Buckets, int64(p.MaxDelay), int64(p.Lifetime),
		tenants, weights, p.Fairness.Default, int64(p.Since), int64(c.Floor), born, p.Retention.Resume, p.Fairness.Reserve,
	}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// The integers of a reply of weir.step: those of the whole, and those of each window.
const head, perWindow = 11, 7

// replySize returns how long the reply is that a list begins with, by what it says, or more than there is.
func replySize(list []int64) int {
	if len(list) < head || list[head-1] < 0 || list[head-1] > limiter.MaxRates {
		return len(list) + 1
	}
	return head + perWindow*int(list[head-1])
}

// decode reads the reply of weir.step, in the order of sql/reply.sql.
func decode(reply []int64) (limiter.Result, error) {
	if len(reply) != replySize(reply) {
		return limiter.Result{}, fmt.Errorf("weir.step answered %d integers, which is not a result", len(reply))
	}
	res := limiter.Result{
		Reason:     limiter.Reason(reply[0]),
		Algorithm:  limiter.Algorithm(reply[1]),
		Granted:    reply[2],
		Remaining:  reply[3],
		Limit:      reply[4],
		ResetAfter: limiter.Micros(reply[5]),
		ExpiresIn:  limiter.Micros(reply[6]),
		RetryAfter: limiter.Micros(reply[7]),
		Delay:      limiter.Micros(reply[8]),
		Now:        limiter.Instant(reply[9]),
	}
	res.Windows.N = int(reply[10])
	for i := range res.Windows.Slice() {
		w := reply[head+perWindow*i:]
		res.Windows.Open[i] = limiter.OpenWindow{
			Rate: limiter.Rate{
				Limit: w[0], Window: limiter.Micros(w[1]), Burst: w[2], Offset: limiter.Micros(w[3]), Monthly: w[4] == 1,
			},
			Index:   w[5],
			Granted: w[6],
		}
	}
	return res, nil
}
