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

// dueOpen begins a window with the slice as soon as it surely is one.
func (r *Region) dueOpen(now int64) (order, int64) {
	if r.opening || !r.slices() {
		return order{}, never
	}
	open := int64(r.link.estimate.earliest(now)) / int64(r.config.Params.Window)
	index := max(open, max(r.main.seen.epoch.Index, r.link.opened)+1)
	at := r.link.estimate.surely(r.opens(index))
	if at >= r.link.estimate.perhaps(r.end(index)) {
		return order{}, never // nobody knows the coordinator's clock well enough any more
	}
	return order{op: escrow.Open, vault: r.main, index: index}, at
}

// held returns until when nothing is sent because the answer might begin a window before
// its slice does, which then could not be used.
func (r *Region) held(now int64) int64 {
	e := &r.link.estimate
	if !r.slices() {
		return now
	}
	index := int64(e.latest(now+int64(r.link.trip.most()))) / int64(r.config.Params.Window)
	begun := max(r.main.seen.epoch.Index, r.link.opened) >= index
	at := e.surely(r.opens(index)) + 1
	switch {
	case r.opening:
		return never
	case begun || at >= e.perhaps(r.end(index)):
		return now
	default:
		return max(now, at)
	}
}

// slices reports whether windows can be begun without asking.
func (r *Region) slices() bool {
	return r.config.Outage == Nominal && r.link.slice > 0 && r.link.estimate.known && r.vault() == r.main
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
		return order{}, never // those who look what an answer brought say what they still need
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
	return o.keep >= seen.remaining && r.demand.claim.of(seen.epoch.Index) <= wants
}

// amount returns what to ask for, and of it the least that is of use.
func (r *Region) amount(o *outlook, now int64) (least, want int64) {
	v := r.vault()
	var remaining int64
	if r.deadline(v) > now {
		remaining = v.seen.remaining
	}
	size := r.config.Batch.Size
	if !r.config.Batch.Fixed {
		size = max(r.rule.Lease(r.demand.sizer, o.life), int64(math.Ceil(2*o.rate*r.link.trip.most())))
	}
	level := r.low(o) + size
	if most := int64(math.Ceil(o.rest + r.slack()*math.Sqrt(o.rest))); o.known && (level > most || r.config.Outage == RegionalOnly) {
		level = most
	}
	want = min(r.need.want+max(0, level-remaining), r.config.Params.Limit)
	least = max(1, min(r.need.least-remaining, want))
	return least, want
}

// slack is by how many roots of what is expected more is held than that: none when
// little is left for others.
func (r *Region) slack() float64 {
	if r.link.grant.Remaining < r.link.grant.Limit/4 {
		return 0
	}
	return 1
}

// low returns how many units the escrow has when the next are asked for: so that it does
// not run out before they come or, where an outage is to be hardly felt, before the
// window is over.
func (r *Region) low(o *outlook) int64 {
	ahead := o.rate * r.link.trip.most()
	low := math.Ceil(ahead + math.Sqrt(ahead))
	if r.config.Outage == RegionalOnly {
		low = max(low, o.rest-math.Sqrt(o.rest))
	}
	return int64(low)
}

// outlook returns what is expected of the rest of the window, or of the next one when
// none is open.
func (r *Region) outlook(now int64) outlook {
	v := r.vault()
	left := r.deadline(v) - now
	if left <= 0 {
		return r.demand.outlook(r.window(), r.window(), 0)
	}
	return r.demand.outlook(float64(left), r.window(), r.demand.asked())
}

// window returns the length of a window in nanoseconds.
func (r *Region) window() float64 { return float64(nanos(r.config.Params.Window)) }

// opens and end return when the window of a number begins and ends, by the
// coordinator's clock.
func (r *Region) opens(index int64) limiter.Instant {
	return limiter.Instant(index * int64(r.config.Params.Window))
}

func (r *Region) end(index int64) limiter.Instant { return r.opens(index + 1) }
