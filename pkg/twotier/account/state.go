package account

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

// A State is what one process knows of one counter: the credits it holds,
// what the store would go on refusing, what it owes, and what it has learned. The
// Rules say what becomes of it; both are pure, and time is an argument.
//
// A Key holds its account in a form that requests spend from without a lock, which
// tests hold to this one. A fleet can be simulated and explored with this one alone.
//
//	a := rules.Open()
//	a, outcome := rules.Decide(a, now, cost)      // for each request
//	c := rules.Ask(a, params, now, cost, ...)     // when it is Undecided and no call is in progress
//	a, lost := rules.Settle(a, now, c, reply)     // then Decide again
type State struct {
	Balance
	Answer
	Debt int64 // used beyond what was charged; paid from what is granted next
	Paid Grant // of the debt, for a decision to report

	Sizer   sizing.Sizer
	Demand  int64 // cost served since the open windows began, held credits included
	Refused int64 // cost refused since the last answer
}

// An Answer is what the store last said beside granting credits.
type Answer struct {
	Windows   limiter.Windows // that were open, without granted counts
	Limit     int64           // of the rate that binds
	Remaining int64
	Resets    int64 // instant at which nothing counts any more of that rate
	Ends      int64 // instant no later than the end of the first window that ends
	Refusal
}

// A Refusal is what the store would go on refusing. It is remembered so that a
// budget that is used up costs one round trip, not one a request.
type Refusal struct {
	Need   int64 // the least cost that is refused
	Until  int64 // instant from which on the store is asked again
	Reason limiter.Reason
	Final  bool // it will never be granted
	// Unknown says that the store may have units left: what it granted came too late.
	Unknown bool
}

// NoRefusal refuses no cost at any time.
var NoRefusal = Refusal{Need: math.MaxInt64, Until: Past}

// A Reply is a result and when it was asked for and received, by the clock of the
// process.
type Reply struct {
	limiter.Result
	Sent, Received int64
	Unknown        bool // a refusal for another reason than the store's
}

// Late reports whether what was granted may no longer be spent. A grant without a
// life of its own is spent at once.
func (r *Reply) Late(now int64) bool {
	if !r.Algorithm.WindowCoupled() && r.ExpiresIn == 0 {
		return false
	}
	return now >= DeadlineOf(r.Sent, r.ExpiresIn)
}

// DefaultRefusal is how long a refusal is remembered that names no time of its own, in
// nanoseconds.
const DefaultRefusal = 1_000_000_000

// An Outcome is what becomes of a request.
type Outcome uint8

// The outcomes.
const (
	Undecided Outcome = iota // the store has to be asked
	Admitted                 // from the held credits
	Refused                  // as the store is known to
)

// Open returns the account of a counter that nothing is known of.
func (r *Rules) Open() State {
	return State{
		Balance: Balance{Front: Grant{Deadline: Past}, Back: Grant{Deadline: Past}},
		Answer:  Answer{Ends: Past, Refusal: NoRefusal},
	}
}

// Decide decides a request as far as that needs no asking.
func (r *Rules) Decide(a State, now, cost int64) (State, Outcome) {
	if h, _, ok := a.Spend(now, cost); ok {
		a.Balance = h
		return a, Admitted
	}
	if cost >= 1 && now < a.Until && a.Shortfall(now, cost) >= a.Need {
		if r.Learn() {
			a.Refused += cost
		}
		return a, Refused
	}
	return a, Undecided
}

// Promote drops credits that are dead, and puts those in front that can pay for the cost.
func (a State) Promote(now, cost int64) State {
	a.Expire(now)
	a.Balance, _ = a.Swap(now, cost)
	return a
}

// Contended reports whether the store had little left of late and, by the forecast, at least
// the units are asked for in a window.
func Contended(z sizing.Sizer, units int64) bool {
	return z.Scarce() && z.Forecast() >= float64(units)
}

// Returned notes that the store has the units back: it may grant them again, and
// refuses only what needs more than that.
func (a State) Returned(units int64) State {
	if !a.Final {
		a.Need += min(units, math.MaxInt64-a.Need)
	}
	return a
}

// CarryOver is Balance.CarryOver; what is dropped was not asked for.
func (a State) CarryOver(now, most int64, into Grant) State {
	before := a.Front.Credits
	a.Balance = a.Balance.CarryOver(now, most, into)
	a.Demand -= before - a.Front.Credits
	return a
}

// Clear takes the held credits away, which nobody asked for, and returns what of them
// the store takes back.
func (a State) Clear(now int64) (next State, back []Grant) {
	back = a.returnable(now)
	a.Demand -= a.Front.Credits + a.Back.Credits
	a.Front.Credits, a.Back = 0, Grant{}
	return a, back
}

// Expire drops credits that are dead, which nobody asked for.
func (a *State) Expire(now int64) {
	for _, part := range []*Grant{&a.Front, &a.Back} {
		if now >= part.Deadline {
			a.Demand -= part.Credits
			part.Credits = 0
		}
	}
}

// payDebt takes the debt from a grant.
func (a *State) payDebt(grant *Grant) {
	part := min(a.Debt, grant.Credits)
	grant.Credits -= part
	a.Debt -= part
	a.notePaid(grant.Charge, part)
}

// notePaid remembers what was paid of the debt.
func (a *State) notePaid(c Charge, units int64) {
	if units == 0 {
		return
	}
	if !a.Paid.Alike(c) {
		a.Paid = Grant{Charge: c}
	}
	a.Paid.Credits += units
}

// Owe charges units to the held credits and notes what is missing as a debt, up
// to most. It returns what it took of credits that are charged as c; what it took of
// others is paid.
func (a State) Owe(now, units, most int64, c Charge) (next State, charged int64) {
	for _, part := range []*Grant{&a.Front, &a.Back} {
		taken := min(part.Held(now), units)
		part.Credits -= taken
		units -= taken
		if part.Alike(c) {
			charged += taken
		} else {
			a.notePaid(part.Charge, taken)
		}
	}
	if units > 0 {
		a.Debt = min(a.Debt+units, most)
	}
	return a, charged
}
