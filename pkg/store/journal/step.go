package journal

import "github.com/weir-dev/weir/pkg/limiter"

// Step applies a command to a counter that is kept, as limiter.Params.Step does, with its
// state and its account. It grants no more than is set aside. waits says that less than
// the least is, although the limit has it: nothing changed, and the next record sets it
// aside.
func (j *Journal) Step(k Key, s limiter.State, a *Account, p limiter.Params, now limiter.Instant, c limiter.Command) (next limiter.State, res limiter.Result, waits bool) {
	next, res = p.Step(s, now, c)
	if c.Op != limiter.Take || res.Granted == 0 {
		return next, res, false
	}
	a.remaining = res.Remaining
	fresh := !s.Counts(now)
	if fresh {
		a.forgive()
	}
	switch left := j.Left(k, a); {
	case res.Granted <= left:
	case c.Min <= left:
		c.Want = left
		next, res = p.Step(s, now, c)
	default:
		a.remaining += res.Granted
		j.await(k, a, res.Granted)
		return s, limiter.Result{Reason: limiter.Exhausted, Now: now}, true
	}
	j.spend(k, a, res.Granted, now)
	return next, res, false
}
