package twotier

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

// An Account is what one process knows of one counter: the credits it holds,
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
type Account struct {
	Balance
	Answer
	Debt int64 // used beyond what was charged; paid from what is granted next
	Paid Grant // of the debt, for a decision to report

	sizer   sizing.Sizer
	demand  int64 // cost served since the open windows began, held credits included
	refused int64 // cost refused since the last answer
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

// noRefusal refuses no cost at any time.
var noRefusal = Refusal{Need: math.MaxInt64, Until: past}

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

// defaultRefusal is how long a refusal is remembered that names no time of its own, in
// nanoseconds.
const defaultRefusal = 1_000_000_000

// An Outcome is what becomes of a request.
type Outcome uint8

// The outcomes.
const (
	Undecided Outcome = iota // the store has to be asked
	Admitted                 // from the held credits
	Refused                  // as the store is known to
)

// Open returns the account of a counter that nothing is known of.
func (r *Rules) Open() Account {
	return Account{
		Balance: Balance{Front: Grant{Deadline: past}, Back: Grant{Deadline: past}},
		Answer:  Answer{Ends: past, Refusal: noRefusal},
	}
}

// Decide decides a request as far as that needs no asking.
func (r *Rules) Decide(a Account, now, cost int64) (Account, Outcome) {
	if h, _, ok := a.Spend(now, cost); ok {
		a.Balance = h
		return a, Admitted
	}
	if cost >= 1 && now < a.Until && a.Shortfall(now, cost) >= a.Need {
		if r.Learn() {
			a.refused += cost
		}
		return a, Refused
	}
	return a, Undecided
}

// Ask returns the command that asks for a lease from which the cost can be paid, and
// the debt before it. All that wait cost waiting together; holders processes share
// the limit, 0 while that is not known.
func (r *Rules) Ask(a Account, p limiter.Params, now, cost, waiting, holders int64) limiter.Command {
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
func (a Account) minForWaiting(p limiter.Params, now, waiting int64) int64 {
	if a.First(now) || !p.Algorithm.WindowCoupled() {
		return 0
	}
	return min(a.Shortfall(now, waiting), (a.Remaining+1)/2, LargestCost(p))
}

// Prefetch returns the command that asks for the next lease before it is needed.
func (r *Rules) Prefetch(a Account, p limiter.Params, now, holders int64) limiter.Command {
	return limiter.Command{Op: limiter.Take, Min: 1, Want: r.size(a, p, now, holders), First: a.First(now)}
}

// First reports whether the store was not asked in the open windows.
func (a Answer) First(now int64) bool { return now >= a.Ends }

// Settle makes the reply to c effective, and returns what has to be given up for it.
func (r *Rules) Settle(a Account, now int64, c limiter.Command, reply Reply) (next Account, lost Grant) {
	a.expire(now)
	r.learn(&a, c, reply)
	grant := GrantOf(reply.Sent, reply.Result)
	if now < grant.Deadline {
		a.payDebt(&grant)
	}
	a.Balance, lost = a.Receive(now, grant, r.carryOver)
	a.demand -= lost.Credits
	a.Answer = a.updated(reply)
	a.Refusal = r.refusalOf(a, c, reply)
	return a, lost
}

// SettleDirect makes a reply effective whose grant pays for requests at once, and returns
// what of the grant is left for them after the debt. None of it becomes a held credit.
func (r *Rules) SettleDirect(a Account, c limiter.Command, reply Reply) (next Account, grant Grant) {
	grant = GrantOf(reply.Sent, reply.Result)
	a.payDebt(&grant)
	a.Answer = a.updated(reply)
	a.Refusal = r.refusalOf(a, c, reply)
	return a, grant
}

// Promote drops credits that are dead, and puts those in front that can pay for the cost.
func (a Account) Promote(now, cost int64) Account {
	a.expire(now)
	a.Balance, _ = a.Swap(now, cost)
	return a
}

// Contended reports whether the store had little left of late and, by the forecast, at least
// the units are asked for in a window.
func (a Account) Contended(units int64) bool {
	return a.sizer.Scarce() && a.sizer.Forecast() >= float64(units)
}

// Returned notes that the store has the units back: it may grant them again, and
// refuses only what needs more than that.
func (a Account) Returned(units int64) Account {
	if !a.Final {
		a.Need += min(units, math.MaxInt64-a.Need)
	}
	return a
}

// CarryOver is Balance.CarryOver; what is dropped was not asked for.
func (a Account) CarryOver(now, most int64, into Grant) Account {
	before := a.Front.Credits
	a.Balance = a.Balance.CarryOver(now, most, into)
	a.demand -= before - a.Front.Credits
	return a
}

// Clear takes the held credits away, which nobody asked for, and returns what of them
// the store takes back.
func (a Account) Clear(now int64) (next Account, back []Grant) {
	back = a.returnable(now)
	a.demand -= a.Front.Credits + a.Back.Credits
	a.Front.Credits, a.Back = 0, Grant{}
	return a, back
}

// expire drops credits that are dead, which nobody asked for.
func (a *Account) expire(now int64) {
	for _, part := range []*Grant{&a.Front, &a.Back} {
		if now >= part.Deadline {
			a.demand -= part.Credits
			part.Credits = 0
		}
	}
}

// payDebt takes the debt from a grant.
func (a *Account) payDebt(grant *Grant) {
	part := min(a.Debt, grant.Credits)
	grant.Credits -= part
	a.Debt -= part
	a.notePaid(grant.Charge, part)
}

// notePaid remembers what was paid of the debt.
func (a *Account) notePaid(c Charge, units int64) {
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
func (a Account) Owe(now, units, most int64, c Charge) (next Account, charged int64) {
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

// updated returns what is known after a reply. One that names no windows leaves
// what was known of them.
func (a Answer) updated(r Reply) Answer {
	a.Remaining, a.Refusal = r.Remaining, noRefusal
	if r.Windows.N == 0 {
		return a
	}
	a.Windows, a.Limit = withoutCounts(r.Windows), r.Limit
	// The store read its clock before the reply was received, so what counts ends no
	// later than this, and no earlier than if the clock had been read when the
	// request was sent.
	a.Resets, a.Ends = r.Received+Nanos(r.ResetAfter), r.Sent+Nanos(r.ExpiresIn)
	if !r.Algorithm.WindowCoupled() {
		w := shortest(r.Windows)
		a.Ends = r.Sent + Nanos(w.End().Sub(r.Now))
	}
	return a
}

// refusalOf returns what the store would refuse after the reply to c.
func (r *Rules) refusalOf(a Account, c limiter.Command, reply Reply) Refusal {
	// A refusal counts from the instant it was received: windows end no later.
	m := Refusal{Need: c.Min, Until: reply.Received + Nanos(reply.RetryAfter), Reason: reply.Reason, Unknown: reply.Unknown}
	pause := r.pause(a, c, reply)
	switch reply.Reason {
	case limiter.Granted:
		switch {
		case pause > 0:
			m.Until = reply.Received
		case reply.Remaining == 0 && reply.Algorithm.WindowCoupled():
			// The grant took the rest of a window, so the next answer is known already.
			return Refusal{Need: 1, Until: a.Resets, Reason: limiter.Exhausted}
		default:
			return noRefusal
		}
	case limiter.Exhausted:
		m.Need = r.leastRefused(c.Min, reply)
	case limiter.TooLarge:
		m.Final = true
	case limiter.ClockBehind:
		// The wait is what the clock was set back, and it may be set right again.
		m.Need, m.Until = 1, min(m.Until, reply.Received+defaultRefusal)
	case limiter.StaleGeneration:
		m.Need = 1
	case limiter.Amnesia, limiter.Forfeited:
	}
	switch {
	case reply.Received+pause > m.Until:
		return Refusal{Need: 1, Until: reply.Received + pause, Reason: limiter.Exhausted}
	case m.Until == reply.Received:
		m.Until += defaultRefusal
	}
	return m
}

// leastRefused returns the least cost that is refused as long as amount is: the one that
// a window which ends no earlier has not left. Algorithms without windows may grant
// less sooner, and so may another rate where one is enough.
func (r *Rules) leastRefused(amount int64, reply Reply) int64 {
	if !reply.Algorithm.WindowCoupled() || r.params.Any {
		return amount
	}
	need := amount
	for _, w := range reply.Windows.Slice() {
		if w.End().Sub(reply.Now) >= reply.RetryAfter {
			need = min(need, max(0, w.Limit-w.Granted)+1)
		}
	}
	return need
}

func withoutCounts(w limiter.Windows) limiter.Windows {
	for i := range w.Slice() {
		w.Open[i].Granted = 0
	}
	return w
}
