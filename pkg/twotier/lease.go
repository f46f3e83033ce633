package twotier

import (
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A lease is what the store last answered for one key: the credits it granted
// together with the instant they die, and what it would refuse. Whoever can reach
// the credits reaches the deadline that belongs to them, so a credit cannot
// outlive its windows by ending up beside another deadline. All but the credits
// is immutable: another answer is another lease.
//
// It fills one cache line, and what many keys have in common is shared.
type lease struct {
	credits   atomic.Int64
	deadline  int64 // instant the credits die
	remaining int64 // at the store
	value     string
	key       *Key
	view      *view
	refusal   *refusal
}

// A view is what is known of the windows of a key, as a client is told.
type view struct {
	windows *limiter.Windows // nil before the first answer
	limit   int64            // of the rate that binds
	resets  int64            // instant the window of that rate ends
}

// A refusal is what the store would go on answering. It is remembered so that a
// budget that is used up costs one round trip, not one a request.
type refusal struct {
	config *Config // the parameters that were refused; others may fare better
	need   int64   // the least that is refused
	until  int64   // instant from which the store is asked again
	reason limiter.Reason
	final  bool // it will never be granted
}

// What a lease knows before the first answer, and when nothing is refused.
var (
	noView    view
	noRefusal = refusal{until: past}
)

// decide decides a request that needs no asking, and reports whether it did.
func (e *lease) decide(l *Limiter, cost int64, d *Decision) bool {
	return e.spend(l, cost, d) || e.refuse(l, cost, d)
}

// spend admits a request from the credits in hand.
//
// The clock is read after the credits are taken, never before: a thread that
// loses the processor in between then sees the time at which it goes on, and a
// credit taken too late is found out. Credits taken from a dead lease are not
// put back; they are worth nothing. What else there is to write is written
// before the clock is read, too, and so is out of the way when the caller copies
// the decision.
func (e *lease) spend(l *Limiter, cost int64, d *Decision) bool {
	if cost < 1 {
		return false
	}
	left, ok := e.take(cost)
	if !ok {
		return false
	}
	d.Allowed = true
	d.Limit = e.view.limit
	d.Remaining = e.remaining + left
	d.Windows = e.view.windows
	d.key, d.cost = e.key, cost
	resets, now := e.view.resets, l.clock.now()
	d.ResetAfter = time.Duration(resets - now)
	if now >= e.deadline {
		*d = Decision{}
		return false
	}
	return true
}

// refuse refuses a request that the store is known to refuse, even if all
// credits in hand went to it.
func (e *lease) refuse(l *Limiter, cost int64, d *Decision) bool {
	r := e.refusal
	if r.config != l.config.Load() || cost < r.need {
		return false
	}
	d.Reason = r.reason
	d.Limit = e.view.limit
	d.Remaining = e.remaining
	d.Windows = e.view.windows
	now := l.clock.now()
	d.ResetAfter = time.Duration(max(0, e.view.resets-now))
	if !r.final {
		d.RetryAfter = time.Duration(r.until - now)
	}
	if now >= r.until || cost-e.held(now) < r.need {
		*d = Decision{}
		return false
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
		// A failed swap means that another thread took some: somebody gets on, and
		// credits only become fewer, so the loop ends.
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

// chargedTo reports whether the credits are of these windows.
func (e *lease) chargedTo(windows *limiter.Windows) bool {
	return e.view.windows != nil && windows != nil && e.view.windows.SameWindows(*windows)
}

// deadlineOf returns the instant up to which a grant may be spent when the
// request was sent at sent and the reply gave it expiresIn to live: the store
// counted from some later instant, so the windows end no earlier. What is taken
// off allows for clocks that run 200 ppm apart, and for the store's resolution.
func deadlineOf(sent int64, expiresIn limiter.Micros) int64 {
	life := nanos(expiresIn)
	return sent + life - drift(life) - int64(time.Millisecond)
}

// drift returns by how much two clocks may part in a time of length d.
func drift(d int64) int64 { return d / 5000 }

// nanos converts to the unit of the clock.
func nanos(d limiter.Micros) int64 { return int64(d) * int64(time.Microsecond) }

// viewOf reads a reply that names windows, of which windows is a shared copy.
func viewOf(r *reply, windows *limiter.Windows) view {
	w := binding(&r.Windows)
	// The store told its time before the reply was received, so the window ends
	// no later than this.
	return view{windows: windows, limit: w.Limit, resets: r.received + nanos(w.End().Sub(r.Now))}
}

// binding returns the window with the least left; of equal ones, the one that
// ends last.
func binding(w *limiter.Windows) limiter.OpenWindow {
	var least limiter.OpenWindow
	for i, v := range w.Slice() {
		left, fewest := v.Limit-v.Granted, least.Limit-least.Granted
		if i == 0 || left < fewest || left == fewest && v.End() > least.End() {
			least = v
		}
	}
	return least
}

// refusalOf returns what the store would refuse after a reply. The window that
// binds ends at resets.
func refusalOf(cfg *Config, take limiter.Command, r *reply, resets int64) refusal {
	// A refusal counts from the instant it was received: windows end no later.
	m := refusal{config: cfg, need: 1, until: r.received + nanos(r.RetryAfter), reason: r.Reason}
	switch r.Reason {
	case limiter.Granted:
		if r.Remaining > 0 {
			return noRefusal
		}
		// The grant took the rest, so the next answer is known already.
		m.until, m.reason = resets, limiter.Exhausted
	case limiter.Exhausted:
		// Less than was asked for may still be there.
		m.need = min(take.Min, r.Remaining+1)
	case limiter.TooLarge:
		m.need, m.final = take.Min, true
	case limiter.ClockBehind:
		// The wait is what the clock was set back, and it may be set right again.
		m.until = min(m.until, r.received+int64(relent))
	case limiter.StaleGeneration, limiter.Amnesia, limiter.Forfeited:
	}
	if m.until == r.received {
		m.until += int64(relent)
	}
	return m
}
