package ledger

import (
	"cmp"
	"slices"
)

// member returns what the parameters say of a member.
func (p *Params) member(name string) (Member, bool) {
	i, ok := slices.BinarySearchFunc(p.Members, name, func(m Member, n string) int { return cmp.Compare(m.Name, n) })
	if !ok {
		return Member{Name: name}, false
	}
	return p.Members[i], true
}

// standing returns where the standing of a member is or belongs.
func (s *State) standing(member string) (int, bool) {
	return slices.BinarySearchFunc(s.Standings, member, func(t Standing, n string) int { return cmp.Compare(t.Member, n) })
}

// attend notes that a member was heard of, what it weighs, that it acknowledges a slice
// and whether it vouches for the memory, and returns its standing. The list is copied.
func (s *State) attend(p *Params, m Member, c *Command) *Standing {
	i, ok := s.standing(m.Name)
	standings := make([]Standing, len(s.Standings), len(s.Standings)+1)
	copy(standings, s.Standings)
	if !ok {
		standings = slices.Insert(standings, i, s.newcomer(p, m, c))
	}
	s.Standings = standings
	t := &s.Standings[i]
	t.Seen = s.Latest
	if c.Weight > 0 {
		t.Weight, t.Tenants = c.Weight, c.Tenants
	}
	s.handOver(p, t, p.slice(m), c)
	s.vouch(c)
	return t
}

// want notes what a member asked for altogether. Its present word counts for more
// than its earlier one.
func (t *Standing) want(asked, said int64) {
	if said == 0 {
		said = t.Demand
	}
	t.Demand = max(asked, said)
}

// settle notes that a member gave units back: it does not want them, whatever it
// wanted of the window before.
func (t *Standing) settle(held, said int64) {
	t.Demand = max(held, said)
	t.Before = min(t.Before, t.Demand)
}
