package ledger

import "github.com/weir-dev/weir/pkg/limiter"

// KeepFor returns how long after now a coordinator must keep s: until no window that
// is remembered can be reported any more, which is also how long a clock may step
// back without being noticed. While a member has a slice it is all time.
func (s State) KeepFor(now limiter.Instant) limiter.Micros {
	for _, t := range s.Standings {
		if t.uses() > 0 {
			return limiter.MaxInstant.Sub(now)
		}
	}
	return max(0, s.end().Add(MaxClosed*s.Window).Sub(now))
}
