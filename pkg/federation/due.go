package federation

import (
	"math"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	// jitter is by how much later than it could a command is sent that must not arrive
	// before a window began.
	jitter = int64(time.Millisecond)
	// longestSleep bounds for how long the loop does not look what is due.
	longestSleep = int64(time.Minute)
)

// An order is what is to be done next with an escrow: Ask leases, Release gives back
// what is above keep, or nothing to hear of the coordinator; Open begins a window with
// the slice, and Peek finds out whether the escrow is there.
type order struct {
	op    escrow.Op
	vault *vault

	min, want int64
	keep      int64
	trims     bool  // it is not worth a command when nothing is given up
	index     int64 // of the window to open
}

// all is more than any escrow has.
const all = limiter.MaxLimit

// turn does what is due, and returns how long until something is again.
func (r *Region) turn() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	o, at := r.due(now)
	for ; at <= now; o, at = r.due(now) {
		if o.idle(r) {
			r.link.checked = now
		} else {
			r.start(o, now)
		}
	}
	r.timed = at
	return time.Duration(min(at-now, longestSleep))
}

// hurry wakes the loop up when something is due earlier than it will wake up for.
func (r *Region) hurry(now int64) {
	if _, at := r.due(now); at < r.timed {
		r.timed = at
		r.wake()
	}
}

// due returns what is to be done next, and when. A window that begins with the slice does
// not wait for the command under way.
func (r *Region) due(now int64) (order, int64) {
	if r.closed {
		return order{}, never
	}
	next, at := r.dueOpen(now)
	if at <= now || r.busy {
		return next, at
	}
	held := r.held(now)
	for _, f := range [...]func(int64) (order, int64){r.dueVisit, r.dueCall, r.dueLease, r.dueTrim} {
		o, when := f(now)
		when = max(when, held)
		if when <= now {
			return o, when
		}
		if when < at {
			next, at = o, when
		}
	}
	return next, at
}

// dueVisit tries an escrow that is away, and empties the spare one when it is back.
func (r *Region) dueVisit(now int64) (order, int64) {
	switch {
	case r.access.cause != nil:
		return order{op: escrow.Peek, vault: r.main}, r.access.retryAt
	case r.spare != nil && r.link.cause == nil:
		return order{op: escrow.Release, vault: r.spare}, now
	default:
		return order{}, never
	}
}

// dueCall tries a coordinator that is away, and makes sure that one is not which has not
// been asked for anything.
func (r *Region) dueCall(now int64) (order, int64) {
	call := order{op: escrow.Release, vault: r.vault(), keep: all}
	switch {
	case r.link.cause != nil:
		return call, r.link.retryAt
	case !r.link.answered && r.need.waiters == 0:
		return call, r.link.retryAt
	default:
		return call, r.link.sent + int64(r.config.Probe)
	}
}

// dueLease asks for what is needed, and ahead of need when the escrow runs low or a
// window has begun.
func (r *Region) dueLease(now int64) (order, int64) {
	if r.link.cause != nil || r.looking > 0 {
		return order{}, never // those that look at an answer say what they still need
	}
	v, at := r.vault(), now
	o := r.outlook(now)
	if open := r.deadline(v) > now; open {
		short := o.rest >= 0.5 && v.seen.remaining < r.low(&o)
		if r.need.waiters == 0 && !short {
			return order{}, never
		}
	} else {
		if r.need.waiters == 0 && r.demand.asked() == 0 {
			return order{}, never
		}
		at = r.begins(now)
	}
	least, want := r.amount(&o, now)
	if want < 1 {
		return order{}, never
	}
	if least >= r.link.dry.least {
		at = max(at, r.link.dry.until)
	}
	return order{op: escrow.Ask, vault: v, min: least, want: want}, at
}

// begins returns when the next window can be asked for that the escrow does not know.
func (r *Region) begins(now int64) int64 {
	if !r.link.estimate.known {
		return now
	}
	index := r.vault().seen.epoch.Index + 1
	if index <= r.link.epoch.Index {
		index = r.link.epoch.Index // the window is open that this escrow knows nothing of
		if r.link.estimate.perhaps(r.end(index)) <= now {
			index++
		}
	}
	return r.link.estimate.arrives(r.opens(index)) + jitter
}

// dueTrim gives up what will not be needed before the window ends: units, and what is
// kept for the region. It looks each time that half of the rest has passed, and no more
// when nobody could make use of it.
func (r *Region) dueTrim(now int64) (order, int64) {
	v := r.vault()
	ends := r.deadline(v)
	if r.link.cause != nil || ends <= now {
		return order{}, never
	}
	since := max(r.link.checked, ends-int64(r.window()))
	at := since + (ends-since)/2
	if float64(ends-at) < max(r.link.trip.most(), float64(jitter)) {
		return order{}, never
	}
	o := r.outlook(now)
	return order{op: escrow.Release, vault: v, keep: r.need.want + int64(math.Ceil(o.rest+r.slack()*math.Sqrt(o.rest))), trims: true}, at
}

// idle reports whether an order would give nothing up.
func (o *order) idle(r *Region) bool {
	if !o.trims {
		return false
	}
	seen := &o.vault.seen
	wants := max(seen.taken+o.keep, seen.taken+seen.remaining)
	all, life := r.split.tenants(seen.epoch.Index), r.outlook(r.clock.Now()).life
	return o.keep >= seen.remaining && (all.keeps(life) || r.demand.claim.of(seen.epoch.Index) <= wants)
}

// window returns the length of a window in nanoseconds.
func (r *Region) window() float64 { return float64(nanos(r.config.Params.Window)) }

// opens and end return when the window of a number begins and ends, by the
// coordinator's clock.
func (r *Region) opens(index int64) limiter.Instant {
	return limiter.Instant(index * int64(r.config.Params.Window))
}

func (r *Region) end(index int64) limiter.Instant { return r.opens(index + 1) }
