package twotier

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/sizing"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A lease is most of a key's account in the form that requests spend from without
// a lock. A request that can reach the credits reaches the deadline and the information
// that belong to them. All but the counts is immutable: another answer is another
// lease.
//
// It fills one cache line, and shares what many keys have in common.
type lease struct {
	credits   atomic.Int64
	refused   atomic.Int64 // cost that was refused, if info.counts
	deadline  int64        // instant the credits die
	remaining int64        // at the store
	name      string       // of the key, see nameOf
	key       *Key
	info      *leaseInfo
}

// decide decides a request that needs no asking, and reports whether it did: it is
// account.Rules.Decide but for what the back of the balance can pay.
func (e *lease) decide(l *Limiter, cost int64, d *Decision) bool {
	return e.spend(l, cost, d) || e.refuse(l, cost, d)
}

// spend admits a request from the held credits: it is account.Grant.Spend.
//
// The clock is read after the credits are taken, never before: a thread that
// loses the processor in between then sees the time at which it goes on, and a
// credit taken too late is found out. Credits taken from a dead lease are put back,
// where nobody can spend them. All other writes come before the clock is read, too,
// and so are out of the way when the caller copies the decision.
func (e *lease) spend(l *Limiter, cost int64, d *Decision) bool {
	if cost < 1 {
		return false
	}
	left, ok := e.take(cost)
	if !ok {
		return false
	}
	t := e.info
	d.Allowed = true
	d.Limit = t.limit
	d.Remaining = e.remaining + left
	d.Windows = t.windows
	d.from, d.cost = e, cost
	resets, now := t.resets, l.clock.real()
	if l.clock.virtual != nil {
		now = l.clock.virtual.Now()
	}
	d.ResetAfter = time.Duration(max(0, resets-now))
	if now >= e.deadline {
		e.credits.Add(cost)
		*d = Decision{}
		return false
	}
	if left <= t.lowWater {
		e.key.prefetch(e)
	}
	return true
}

// refuse refuses a request that the store is known to refuse, even if all
// held credits went to it.
func (e *lease) refuse(l *Limiter, cost int64, d *Decision) bool {
	t := e.info
	if cost < t.Need || cost <= t.behind || t.settings != l.settings.Load() {
		return false
	}
	if t.Unknown {
		d.Source = FromFailureAction
	}
	d.Reason = t.Reason
	d.Limit = t.limit
	d.Remaining = e.remaining
	d.Windows = t.windows
	now := l.clock.real()
	if l.clock.virtual != nil {
		now = l.clock.virtual.Now()
	}
	d.ResetAfter = time.Duration(max(0, t.resets-now))
	if !t.Final {
		d.RetryAfter = time.Duration(t.Until - now)
	}
	if now >= t.Until || cost-e.joinable(now) < t.Need || t.carries && now >= e.deadline && e.credits.Load() > 0 {
		*d = Decision{}
		return false
	}
	if t.counts {
		e.countRefused(now, cost)
	}
	return true
}

// take takes cost out of the credits and returns what is left. Whether the lease
// is alive is for the caller to check, afterwards.
func (e *lease) take(cost int64) (left int64, ok bool) {
	for {
		held := e.credits.Load()
		if held < cost {
			return held, false
		}
		// A failed swap means that another thread took or put back some: somebody gets
		// on, so the loop ends.
		if e.credits.CompareAndSwap(held, held-cost) {
			return held - cost, true
		}
	}
}

// drain takes all credits out of the lease.
func (e *lease) drain() int64 { return e.credits.Swap(0) }

// held returns the credits that can be spent at the instant now.
func (e *lease) held(now int64) int64 {
	if now >= e.deadline {
		return 0
	}
	return e.credits.Load()
}

// joinable returns the credits that what is granted next is put beside.
func (e *lease) joinable(now int64) int64 {
	if e.info.byTime {
		return 0
	}
	return e.held(now)
}

// The first exactly units that are refused are counted. After them one request in
// 2^sampleBits counts for that many, so that counting does not slow down a flood of
// refusals.
const (
	exactCounts = 256
	sampleBits  = 4
)

// countRefused counts the cost of a refusal at the instant now, which stands for
// chance.
func (e *lease) countRefused(now, cost int64) {
	const golden = 0x9e3779b97f4a7c15 // spreads the low bits of the clock (Knuth 6.4)
	switch {
	case e.refused.Load() < exactCounts:
		e.refused.Add(cost)
	case bits.RotateLeft64(uint64(now)*golden, sampleBits)&(1<<sampleBits-1) == 0:
		e.refused.Add(min(cost, sizing.MostDemand) << sampleBits)
	}
}

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
