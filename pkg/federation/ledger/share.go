package ledger

import "slices"

// has returns what a member has of the open window, with its slice.
func (s *State) has(p *Params, m Member) int64 { return s.grantedTo(m.Name) + s.sliced(p, m) }

// room returns how much more a member may be granted now.
func (s *State) room(p *Params, m Member) int64 {
	claims, whole := s.claims(p)
	self := slices.IndexFunc(p.Members, func(o Member) bool { return o.Name == m.Name })
	if self < 0 {
		return 0
	}
	own := &claims[self]
	room := s.Limit - s.taken(p)
	switch p.Strategy {
	case Static:
		divide(claims, whole)
		room = min(room, own.share-own.has)
	case FairShare:
		own.high = max(own.has, whole)
		fill(claims, whole)
		room -= kept(claims, self)
	default:
		room -= kept(claims, self)
	}
	if m.Borrowing >= 0 {
		room = min(room, m.Nominal+m.Borrowing-own.has)
	}
	return max(0, room)
}

// claims returns what each member claims, and what there is to divide among them:
// what they have, and what is free.
func (s *State) claims(p *Params) ([]claim, int64) {
	whole := s.Limit - s.taken(p)
	var nominal int64
	for _, m := range p.Members {
		whole += s.has(p, m)
		nominal += m.Nominal
	}
	claims := make([]claim, len(p.Members))
	for i, m := range p.Members {
		claims[i] = s.claim(p, m, nominal <= whole)
	}
	return claims, whole
}

// claim returns what a member has for certain and can make use of. The units it never
// lends are certain, unless memories before left less than all nominal shares.
func (s *State) claim(p *Params, m Member, certain bool) claim {
	c := claim{weight: m.Weight, unmet: m.Weight, nominal: m.Nominal, has: s.has(p, m)}
	var wants int64
	if i, ok := s.standing(m.Name); ok {
		t := &s.Standings[i]
		wants = max(t.Demand, t.Before)
		if t.Weight > 0 {
			c.weight, c.unmet = t.Weight, t.Weight
			if t.Tenants.Unmet > 0 {
				c.met, c.unmet = t.Tenants.Met, t.Tenants.Unmet
			}
		}
	}
	if m.Borrowing >= 0 {
		wants = min(wants, m.Nominal+m.Borrowing)
	}
	c.low, c.high = c.has, max(c.has, m.Kept, wants)
	if certain {
		c.low = max(c.has, m.Kept)
	}
	c.gets = c.low
	return c
}

// kept returns what is kept for all but one, beyond what they have.
func kept(claims []claim, self int) int64 {
	var sum int64
	for i := range claims {
		if i != self {
			sum += claims[i].gets - claims[i].has
		}
	}
	return sum
}
