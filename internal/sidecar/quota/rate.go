package quota

import (
	"cmp"
	"math"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BindingRate returns the rate that the decision describes, if that can be shown. For
// windows it is the one of its limit that may end so late, and otherwise the one whose
// burst is nearest.
func BindingRate(s enforce.QuotaState) limiter.Rate {
	d, rates := &s.Decision, s.Params.Rates
	binding, off := rates[0], int64(math.MaxInt64)
	for _, r := range rates {
		burst := cmp.Or(r.Burst, r.Limit)
		distance := max(burst-d.Limit, d.Limit-burst)
		if s.Params.Algorithm.WindowCoupled() && d.ResetAfter > Length(r) {
			continue
		}
		if distance < off {
			binding, off = r, distance
		}
	}
	return binding
}

// Length returns the length of the rate's window.
func Length(r limiter.Rate) time.Duration { return time.Duration(r.Window) * time.Microsecond }
