package account

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Past is before every instant; 0 need not be.
const Past = math.MinInt64

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

// drift returns by how much two clocks may part in a time of length d.
func drift(d int64) int64 { return d / 5000 }

// Nanos converts to the unit of the clock.
func Nanos(d limiter.Micros) int64 { return int64(d) * microsecond }

// join returns the grant with the credits of h, at most carried of them as carried.
func (h Grant) join(grant Grant, carried int64) Grant {
	grant.Carried = min(carried, h.Credits)
	grant.Credits += h.Credits
	return grant
}
