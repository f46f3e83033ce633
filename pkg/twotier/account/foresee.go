package account

import "github.com/weir-dev/weir/pkg/limiter"

// An Outlook is what an account says of a request that is not made.
type Outlook struct {
	Outcome       // that Decide would have
	Held    int64 // units that can be spent
	Debt    int64 // units that are paid before the request is
	Wait    int64 // Refused: until the store is asked again, in nanoseconds; 0 when it never is
	Reason  limiter.Reason
	Least   int64 // units that have to be granted before the request is admitted
}

// Foresee returns what becomes of a request by Decide, and what else it takes.
func (r *Rules) Foresee(a State, p limiter.Params, now, cost int64) Outlook {
	_, outcome := r.Decide(a, now, cost)
	o := Outlook{Outcome: outcome, Held: a.Front.Held(now) + a.Back.Held(now), Debt: a.Debt, Least: cost}
	most := LargestCost(p)
	switch {
	case cost > most:
		o.Outcome, o.Reason = Refused, limiter.TooLarge
	case outcome == Refused:
		o.Reason = a.Reason
		if !a.Final {
			o.Wait = a.Until - now
		}
	case outcome == Undecided:
		o.Least = min(max(a.Shortfall(now, cost), 1)+a.Debt, most)
	}
	return o
}

// Peek returns the command that asks the store what it would grant.
func (o Outlook) Peek() limiter.Command {
	return limiter.Command{Op: limiter.Peek, Min: o.Least, Want: o.Least}
}

// With adds what the store answered to Peek of an earlier outlook, and returns what it comes
// to for the request: Granted is not 0 when it would be admitted. A lease that came in
// between is not counted twice.
func (o Outlook) With(earlier Outlook, res limiter.Result) limiter.Result {
	res.Remaining = max(o.Held, res.Remaining+min(o.Held, earlier.Held)-o.Debt, 0)
	switch {
	case o.Outcome == Admitted:
		res.Granted, res.Reason, res.RetryAfter, res.Delay = earlier.Least, limiter.Granted, 0, 0
	case o.Outcome == Refused:
		res.Granted, res.Reason, res.Delay = 0, o.Reason, 0
		if res.RetryAfter = max(res.RetryAfter, limiter.Micros((o.Wait+microsecond-1)/microsecond)); o.Wait == 0 {
			res.RetryAfter = 0
		}
	case res.Reason == limiter.TooLarge && earlier.Debt > 0: // it is paid bit by bit
		if res.Reason, res.RetryAfter = limiter.Exhausted, res.ResetAfter; res.RetryAfter == 0 {
			res.RetryAfter = DefaultRefusal / microsecond
		}
	}
	return res
}
