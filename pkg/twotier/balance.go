package twotier

import "github.com/weir-dev/weir/pkg/limiter"

// The units of the holder's clock.
const (
	microsecond = 1000 // nanoseconds
	millisecond = 1000 * microsecond
)

// A Charge says what credits were charged to at the store.
type Charge struct {
	Windows limiter.Windows // of the grant, without granted counts
	At      limiter.Instant // of the grant, if it is time-coupled; otherwise 0
	ByTime  bool            // time-coupled: the credits die by themselves, not with the windows
}

// Alike reports whether credits of both charges are the same thing: they may be
// put together, and one may be given back for the other.
func (c Charge) Alike(o Charge) bool {
	return c.ByTime == o.ByTime && c.At == o.At && c.Windows.N > 0 && c.Windows.SameWindows(o.Windows)
}

// A Grant is credits that a holder was granted together, with the instant they
// die. A credit cannot outlive what it was charged to by ending up beside another
// deadline, because it never leaves its Grant but for one that is alike.
//
// Instants are nanoseconds of the holder's own clock, which never steps.
type Grant struct {
	Credits  int64 // that may still be spent
	Deadline int64 // from which on none may be
	// Carried is how many of the credits may have been charged to windows that are
	// over. Nobody takes them back.
	Carried int64
	Charge
}

// GrantOf returns what a reply brings whose request was sent at sent.
func GrantOf(sent int64, r limiter.Result) Grant {
	h := Grant{Credits: r.Granted, Deadline: DeadlineOf(sent, r.ExpiresIn)}
	h.Windows = r.Windows
	for i := range h.Windows.Slice() {
		h.Windows.Open[i].Granted = 0
	}
	if !r.Algorithm.WindowCoupled() {
		h.ByTime, h.At = true, r.Now
	}
	return h
}

// DeadlineOf returns the instant up to which a grant may be spent when the
// request was sent at sent and the reply gave it expiresIn to live: the store counted
// from some later instant, so the windows end no earlier. The subtracted margin
// allows for clocks that run 200 ppm apart, and for the store's resolution.
func DeadlineOf(sent int64, expiresIn limiter.Micros) int64 {
	life := Nanos(expiresIn)
	return sent + life - drift(life) - millisecond
}

// Held returns the credits that can be spent at the instant now.
func (h Grant) Held(now int64) int64 {
	if now >= h.Deadline {
		return 0
	}
	return h.Credits
}

// Returnable returns what of the grant may be given back at the instant now: what
// is certain to have been charged to its windows. Later nobody takes it.
func (h Grant) Returnable(now int64) Grant {
	h.Credits, h.Carried = max(0, h.Held(now)-h.Carried), 0
	return h
}

// Spend admits a request of the cost, or reports that it cannot.
func (h Grant) Spend(now, cost int64) (Grant, bool) {
	if cost < 1 || h.Held(now) < cost {
		return h, false
	}
	h.Credits -= cost
	return h, true
}

// A Balance is all that a holder holds of one key. It is the whole of the rules that
// keep the promise of a limit in a holder: a Key spends from the front without a
// lock, as Grant.Spend says, and does everything else by these methods.
//
// Window-coupled credits are all in front. Time-coupled ones of two grants may be
// held at once, the older in front, because they die at different instants.
type Balance struct{ Front, Back Grant }

// Spend admits a request of the cost from the front or else from the back, and
// returns what it is charged to; or it reports that neither suffices.
func (h Balance) Spend(now, cost int64) (Balance, Charge, bool) {
	h, ok := h.Swap(now, cost)
	if !ok {
		return h, Charge{}, false
	}
	h.Front, ok = h.Front.Spend(now, cost)
	return h, h.Front.Charge, ok
}

// Swap puts what can pay for the cost in front, or reports that nothing can.
func (h Balance) Swap(now, cost int64) (Balance, bool) {
	switch {
	case h.Front.Held(now) >= cost:
		return h, true
	case h.Back.Held(now) >= cost:
		return Balance{Front: h.Back, Back: h.Front}, true
	default:
		return h, false
	}
}

// Shortfall returns how many units have to be granted before a request of the cost can
// be admitted. Credits of windows join what is granted; those of a time do not.
func (h Balance) Shortfall(now, cost int64) int64 {
	if h.Front.ByTime {
		return cost
	}
	return cost - h.Front.Held(now)
}

// Receive takes a grant up, and returns what has to be given up for it. A grant
// without credits is a refusal, which also reports what windows are open.
//
//	the grant                               the balance
//	comes after its deadline                stays; the grant is given up
//	is charged to the windows of the front  joins the front, whose windows end when its do
//	is charged to other windows             replaces the front, which is given up; with
//	                                        carryOver it takes the front over
//	is time-coupled                         gets behind the front; what was there first
//	                                        keeps its place unless the front has less
//
// A late grant may be of windows that are over, so nobody may spend it.
func (h Balance) Receive(now int64, grant Grant, carryOver bool) (next Balance, lost Grant) {
	switch {
	case now >= grant.Deadline:
		return h, grant
	case h.Front.Held(now) == 0:
		h.Front = grant
		return h, Grant{}
	case grant.ByTime || h.Front.ByTime:
		return h.putBehind(now, grant)
	case h.Front.Alike(grant.Charge):
		h.Front = h.Front.join(grant, h.Front.Carried)
		return h, Grant{}
	case carryOver:
		h.Front = h.Front.join(grant, h.Front.Credits)
		return h, Grant{}
	default:
		lost, h.Front = h.Front, grant
		return h, lost
	}
}

// join returns the grant with the credits of h, at most carried of them as carried.
func (h Grant) join(grant Grant, carried int64) Grant {
	grant.Carried = min(carried, h.Credits)
	grant.Credits += h.Credits
	return grant
}

// putBehind keeps the grant and the better one of the two that are held. The
// older stays in front, to be spent before it dies.
func (h Balance) putBehind(now int64, grant Grant) (Balance, Grant) {
	if grant.Credits == 0 {
		return h, Grant{}
	}
	lost := h.Back
	if h.Front.Held(now) < h.Back.Held(now) {
		lost, h.Front = h.Front, h.Back
	}
	h.Back = grant
	return h, lost
}

// CarryOver lets credits whose windows are over live on, at most most of them, in
// the windows of into.
func (h Balance) CarryOver(now, most int64, into Grant) Balance {
	if now < h.Front.Deadline || h.Front.ByTime || h.Front.Credits == 0 {
		return h
	}
	into.Credits = min(h.Front.Credits, max(most, 0))
	into.Carried = into.Credits
	h.Front = into
	return h
}

// Refund puts the cost of a request that was not let through after all beside
// credits of the same charge, or reports that there are none.
func (h Balance) Refund(c Charge, cost int64) (Balance, bool) {
	switch {
	case h.Front.Alike(c):
		h.Front.Credits += cost
	case h.Back.Alike(c):
		h.Back.Credits += cost
	default:
		return h, false
	}
	return h, true
}

// returnable returns what of the balance may be given back.
func (h Balance) returnable(now int64) []Grant {
	var parts []Grant
	for _, part := range []Grant{h.Front.Returnable(now), h.Back.Returnable(now)} {
		if part.Credits > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// drift returns by how much two clocks may part in a time of length d.
func drift(d int64) int64 { return d / 5000 }

// Nanos converts to the unit of the clock.
func Nanos(d limiter.Micros) int64 { return int64(d) * microsecond }
