package account

import "github.com/weir-dev/weir/pkg/limiter"

// Ask returns the command that asks for a lease from which the cost can be paid, and
// the debt before it. All that wait cost waiting together; holders processes share
// the limit, 0 while that is not known.
func (r *Rules) Ask(a State, p limiter.Params, now, cost, waiting, holders int64) limiter.Command {
	short := max(a.Shortfall(now, cost), 1)
	want := max(short, r.size(a, p, now, holders), waiting) + a.Debt
	least := max(short, a.minForWaiting(p, now, waiting))
	return limiter.Command{Op: limiter.Take, Min: least, Want: min(want, limiter.MaxLimit), First: a.First(now)}
}

// minForWaiting returns what a lease has to bring for all that wait. The first of a window
// brings what the store finds fair, lest few holders strand the budget. Requests that
// still wait then spend a lease as soon as it comes: a burst at one holder of many
// would else take a call for each few units. Half of what was left last is for the
// others, which have taken some of it meanwhile: a holder that asks for more than
// there is gets nothing.
func (a State) minForWaiting(p limiter.Params, now, waiting int64) int64 {
	if a.First(now) || !p.Algorithm.WindowCoupled() {
		return 0
	}
	return min(a.Shortfall(now, waiting), (a.Remaining+1)/2, LargestCost(p))
}

// Prefetch returns the command that asks for the next lease before it is needed.
func (r *Rules) Prefetch(a State, p limiter.Params, now, holders int64) limiter.Command {
	return limiter.Command{Op: limiter.Take, Min: 1, Want: r.size(a, p, now, holders), First: a.First(now)}
}

// First reports whether the store was not asked in the open windows.
func (a Answer) First(now int64) bool { return now >= a.Ends }

// size returns the units a lease asks for ahead of demand.
//
// The store bounds what it grants from a window by the holders that leased in the
// window before. It cannot know of a holder that did not, and nothing guides grants
// that are time-coupled: those holders ask for no more than their part of the limit.
// The first to ask would otherwise take all of a small budget, for requests that go
// to others.
func (r *Rules) size(a State, p limiter.Params, now, holders int64) int64 {
	size := r.batch
	if r.learned {
		life := 1.0
		if p.Algorithm.WindowCoupled() {
			life = a.windowLeft(now)
		}
		size = r.sizing.Lease(a.Sizer, life)
	}
	size = min(size, LargestCost(p))
	switch {
	case holders == 0:
		size = min(size, r.slowStart(a, p, now))
	case !p.Algorithm.WindowCoupled() || !a.guided(now):
		size = min(size, partOf(p, holders))
	}
	return size
}

// firstPart is which part of a limit a holder asks for first that does not know how many
// share it.
const firstPart = 10

// slowStart returns the most that a holder asks for that does not know how many share the
// limit: a part of it first, and then as much as it was granted already, until it
// has learned what is asked for in a window. So what it has and does not use is no more
// than that part or what it used, and one that is alone has all of the limit after
// five calls.
func (r *Rules) slowStart(a State, p limiter.Params, now int64) int64 {
	part := partOf(p, firstPart)
	switch {
	case !a.guided(now):
		return part
	case r.learned && a.Sizer.Forecast() == 0:
		return max(part, a.Demand)
	default:
		return limiter.MaxLimit
	}
}

// partOf returns an equal part of the limit, rounded up.
func partOf(p limiter.Params, n int64) int64 { return (LargestCost(p) + n - 1) / n }

// guided reports whether the store was asked in the open windows or those before.
func (a Answer) guided(now int64) bool {
	return a.Windows.N > 0 && now-a.Ends < Nanos(shortest(a.Windows).Window)
}

// windowLeft returns the part of the shortest window that is left; nobody knows it exactly.
func (a Answer) windowLeft(now int64) float64 {
	if a.Windows.N == 0 {
		return 1
	}
	length := Nanos(shortest(a.Windows).Window)
	left := (a.Ends - now) % length
	if left <= 0 {
		left += length
	}
	return float64(left) / float64(length)
}
