package twotier

import (
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A store may take longer than what it grants by time lives. Every lease is then dead
// when it comes, and what it brought is lost to all. So after mostLate such replies in
// a row requests are decided one by one, until a reply comes in time: each by what was
// granted while it waited, and is spent at once, whenever it comes. That is mode
// CachedDeny, and what the algorithm promises holds as it does there, for the instants
// at the store; by its bucket or log the store still counts as if each grant lived.
const mostLate = 3

// slowness is how many of the last time-coupled replies came too late, mostLate at
// most. One in time takes one back, so that a store at the edge costs one lost lease
// at a time.
type slowness struct{ late atomic.Int32 }

// observe takes note of a reply at the instant now. That another one gets lost between
// the two steps does not matter.
func (s *slowness) observe(r account.Reply, now int64) {
	if r.Algorithm.WindowCoupled() || r.ExpiresIn == 0 {
		return
	}
	late := s.late.Load()
	switch {
	case r.Late(now):
		s.late.Store(min(late+1, mostLate))
	case late > 0:
		s.late.Store(late - 1)
	}
}

// tooSlow reports whether leases of the settings come too late.
func (s *slowness) tooSlow(cfg *settings) bool {
	return s.late.Load() == mostLate && cfg.Params.Lifetime > 0
}
