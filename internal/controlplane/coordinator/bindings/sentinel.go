package bindings

import (
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// sentinelOffset sets the sentinel's windows apart from any that a policy can name. They end just
// before the store's, so that no window of the store begins while the sentinel is in force.
const sentinelOffset limiter.Micros = 1

// Sentinel returns the parameters that the store is asked with when the limit draws from a
// budget.
func Sentinel(p limiter.Params) limiter.Params {
	out := limiter.Params{Since: p.Since, Generation: p.Generation}
	for _, r := range p.Rates {
		out.Rates = append(out.Rates, limiter.Rate{Limit: limiter.MaxLimit, Window: r.Window, Offset: sentinelOffset})
	}
	return out
}

// IsSentinel reports whether windows in force are the sentinel's, and not of another contract.
func IsSentinel(w limiter.Windows) bool {
	return w.N > 0 && !slices.ContainsFunc(w.Slice(), func(o limiter.OpenWindow) bool {
		return o.Offset != sentinelOffset || o.Limit != limiter.MaxLimit
	})
}
