package ledger

// Allocation is how much of the open window is given away, for status.
type Allocation struct {
	Limit   int64
	Granted int64 // to holders, by memories before as well, and as slices
	Kept    int64 // for members that have not asked for it yet
	Free    int64 // for the member that asks first
}

// Allocation returns how the open window is divided. It is zero before the first
// command.
func (s State) Allocation(p Params) Allocation {
	if s.Term == 0 {
		return Allocation{}
	}
	a := Allocation{Limit: s.Limit, Granted: s.taken(&p)}
	left := max(0, s.Limit-a.Granted)
	claims, whole := s.claims(&p)
	if p.Strategy == FairShare {
		fill(claims, whole)
	}
	a.Kept = min(left, kept(claims, -1))
	a.Free = left - a.Kept
	return a
}

// GrantedTo returns what a member has of the open window, with its slice.
func (s State) GrantedTo(p Params, member string) int64 {
	m, known := p.member(member)
	if !known {
		p.Slices = false
	}
	return s.has(&p, m)
}

// StandingOf returns what is known of a member, and false for one never heard of.
func (s State) StandingOf(member string) (Standing, bool) {
	i, ok := s.standing(member)
	if !ok {
		return Standing{Member: member}, false
	}
	return s.Standings[i], true
}
