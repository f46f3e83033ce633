package twotier

import (
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A lease holds credits together with the instant they die. Whoever can reach
// the credits reaches the deadline that belongs to them, so a credit cannot
// outlive its windows by ending up beside another deadline.
type lease struct {
	credits  atomic.Int64
	deadline int64 // immutable: instant the credits die
	quota          // immutable: what the reply that granted them said
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
	if e == nil || now >= e.deadline {
		return 0
	}
	return e.credits.Load()
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

// A quota is what is known of a key's windows, as a client is told.
type quota struct {
	windows   *limiter.Windows
	limit     int64 // of the rate that binds
	remaining int64 // at the store
	resets    int64 // instant the window of that rate ends
}

// quotaOf reads a reply received at the instant at.
func quotaOf(res *limiter.Result, windows *limiter.Windows, at int64) quota {
	w := binding(&res.Windows)
	return quota{
		windows:   windows,
		limit:     w.Limit,
		remaining: res.Remaining,
		resets:    at + nanos(w.End().Sub(res.Now)),
	}
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

// A refusal is what the store would go on answering. It is remembered so that a
// budget that is used up costs one round trip, not one a request.
type refusal struct {
	config *Config // the parameters that were refused; others may fare better
	need   int64   // the least that is refused
	until  int64   // instant from which the store is asked again
	retry  bool    // whether it will ever be granted
	reason limiter.Reason
	quota
}
