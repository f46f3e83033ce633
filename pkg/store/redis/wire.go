package redis

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// encode returns the arguments of the script, as lua/fixedwindow.lua lists them.
func encode(p limiter.Params, c limiter.Command) []any {
	args := make([]any, 0, 6+2*len(p.Rates)+2*c.Windows.N)
	args = append(args, int64(c.Op), c.Min, c.Want, p.Generation, len(p.Rates))
	for _, r := range p.Rates {
		args = append(args, r.Limit, int64(r.Window))
	}
	if c.Op == limiter.Return {
		args = append(args, c.Windows.N)
		for _, w := range c.Windows.Slice() {
			args = append(args, int64(w.Window), w.Index)
		}
	}
	return args
}

// decode reads the script's reply and whether it began the instance's memory.
func decode(reply any) (res limiter.Result, began bool, err error) {
	list, ok := reply.([]any)
	if !ok {
		return res, false, fmt.Errorf("the script answered %T, not a list", reply)
	}
	ints := make([]int64, len(list))
	for i, v := range list {
		if ints[i], ok = v.(int64); !ok {
			return res, false, fmt.Errorf("the script answered %T at %d, not an integer", v, i)
		}
	}
	const head = 8
	if len(ints) < head || ints[7] < 0 || ints[7] > limiter.MaxRates || len(ints) != head+4*int(ints[7]) {
		return res, false, fmt.Errorf("the script answered %d integers, which is no result", len(ints))
	}
	res = limiter.Result{
		Reason:     limiter.Reason(ints[1]),
		Granted:    ints[2],
		Remaining:  ints[3],
		ExpiresIn:  limiter.Micros(ints[4]),
		RetryAfter: limiter.Micros(ints[5]),
		Now:        limiter.Instant(ints[6]),
	}
	res.Windows.N = int(ints[7])
	for i := range res.Windows.Slice() {
		w := ints[head+4*i:]
		res.Windows.Open[i] = limiter.OpenWindow{
			Rate:    limiter.Rate{Limit: w[0], Window: limiter.Micros(w[1])},
			Index:   w[2],
			Granted: w[3],
		}
	}
	return res, ints[0] == 1, nil
}
