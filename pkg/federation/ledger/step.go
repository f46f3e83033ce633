package ledger

import "github.com/weir-dev/weir/pkg/limiter"

// Step applies c to s at the instant now, by the parameters. Both are valid by
// Validate. It panics on an Op it does not know.
//
//	what is found, in this order                       answer
//	an instant after now, or a later term, was served  Behind; no Epoch, nothing changed
//	another window length, and the window is open      Mismatched; no Epoch, nothing changed
//	a member that p does not name                      Unknown; only its slice is handed over
//	Lease or Release, Seq not above all before         Stale, what is
//	Lease, the window began before the memory,         Amnesia
//	and not all members vouch for that
//	Lease, MaxHolders others of the member             Crowded
//	Lease, less than Min left for all, or for it       Exhausted, Kept
//	Lease, more than is set aside                      Unreserved, nothing changed
//	Lease otherwise                                    Granted, Min to Want beyond Command.Granted
//	Release of an epoch that is not open               Forfeited
//	Release otherwise                                  Granted, at most Command.Granted
//	Report                                             Granted
//	Reserve of an epoch that is not open               Forfeited
//	Reserve otherwise                                  Granted
//
// Behind and Mismatched say nothing of any window and let the member keep what it
// has, so there is nothing in them to take.
//
// A port of Step follows its files in this order: window.go brings the state to the open
// window, account.go and standing.go find what is known of a holder and of its member,
// slices.go hands slices over, vouch.go finds whether a memory is the first, share.go
// finds what a member may get, and lease.go, release.go, report.go and reserve.go apply
// the operation. Lists are ordered by the bytes of their names. Every number stays below
// 2^53 in between, and every quotient is of integers that are not negative, rounded
// down.
func (s State) Step(p Params, now limiter.Instant, c Command) (State, Grant) {
	if reason, wait := s.refuses(&p, now, &c); reason != 0 {
		return s, Grant{Reason: reason, Slice: c.Slice, Now: now, RetryAfter: wait}
	}
	next := s
	next.advance(&p, now, &c)
	if c.Op == Reserve {
		return next, next.reserve(&c)
	}
	m, known := p.member(c.Member)
	switch {
	case !known:
		return next, next.dismiss(&p, &c)
	case c.Op == Report:
		return next, next.report(&p, m, &c)
	case next.stale(&c):
		return next, next.answer(&p, m, &c, Stale)
	case c.Op == Release:
		return next, next.release(&p, m, &c)
	case c.Op != Lease:
		panic("ledger: unknown op")
	}
	g := next.lease(&p, m, &c)
	if g.Reason == Unreserved {
		return s, g
	}
	return next, g
}

// answer returns to the holder what is, and to its member what it may use by itself.
func (s *State) answer(p *Params, m Member, c *Command, reason Reason) Grant {
	g := Grant{
		Reason: reason, Seq: c.Seq, Epoch: s.Epoch(),
		Limit: s.Limit, Remaining: s.room(p, m), ExpiresIn: s.end().Sub(s.Latest), Now: s.Latest,
	}
	if i, ok := s.account(c.Member, c.Holder); ok {
		g.Seq, g.Granted = s.Accounts[i].Seq, s.Accounts[i].Granted
	}
	if i, ok := s.standing(c.Member); ok {
		g.Slice = s.promise(i, p.slice(m))
		if !s.forgot(p, c) {
			g.NowSlice = s.Standings[i].Slice
		}
	}
	if reason != Granted && reason != Stale {
		g.RetryAfter = g.ExpiresIn
	}
	return g
}
