package account

import "github.com/weir-dev/weir/pkg/limiter"

// Settle makes the reply to c effective, and returns what has to be given up for it.
func (r *Rules) Settle(a State, now int64, c limiter.Command, reply Reply) (next State, lost Grant) {
	a.Expire(now)
	r.learn(&a, c, reply)
	grant := GrantOf(reply.Sent, reply.Result)
	if now < grant.Deadline {
		a.payDebt(&grant)
	}
	a.Balance, lost = a.Receive(now, grant, r.carryOver)
	a.Demand -= lost.Credits
	a.Answer = a.updated(reply)
	a.Refusal = r.refusalOf(a, c, reply)
	return a, lost
}

// SettleDirect makes a reply effective whose grant pays for requests at once, and returns
// what of the grant is left for them after the debt. None of it becomes a held credit.
func (r *Rules) SettleDirect(a State, c limiter.Command, reply Reply) (next State, grant Grant) {
	grant = GrantOf(reply.Sent, reply.Result)
	a.payDebt(&grant)
	a.Answer = a.updated(reply)
	a.Refusal = r.refusalOf(a, c, reply)
	return a, grant
}

// updated returns what is known after a reply. One that names no windows leaves
// what was known of them.
func (a Answer) updated(r Reply) Answer {
	a.Remaining, a.Refusal = r.Remaining, NoRefusal
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
func (r *Rules) refusalOf(a State, c limiter.Command, reply Reply) Refusal {
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
			return NoRefusal
		}
	case limiter.Exhausted:
		m.Need = r.leastRefused(c.Min, reply)
	case limiter.TooLarge:
		m.Final = true
	case limiter.ClockBehind:
		// The wait is what the clock was set back, and it may be set right again.
		m.Need, m.Until = 1, min(m.Until, reply.Received+DefaultRefusal)
	case limiter.StaleGeneration:
		m.Need = 1
	case limiter.Amnesia, limiter.Forfeited:
	}
	switch {
	case reply.Received+pause > m.Until:
		return Refusal{Need: 1, Until: reply.Received + pause, Reason: limiter.Exhausted}
	case m.Until == reply.Received:
		m.Until += DefaultRefusal
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
