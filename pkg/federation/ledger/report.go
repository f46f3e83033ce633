package ledger

import (
	"cmp"
	"slices"
)

// report notes what a member counted. It is answered as a command that asks for
// nothing, whatever its number.
func (s *State) report(p *Params, m Member, c *Command) Grant {
	s.attend(p, m, c)
	s.Closed = slices.Clone(s.Closed)
	for _, u := range c.Usage {
		if i, ok := s.closed(u.Index); ok {
			s.Closed[i].count(c.Member, u)
		}
	}
	return s.answer(p, m, c, Granted)
}

// closed returns where a window that is over is remembered. One in which nobody asked
// for anything was not noticed: members may have used their slices of it.
func (s *State) closed(index int64) (int, bool) {
	i, ok := slices.BinarySearchFunc(s.Closed, index, func(c Closed, index int64) int { return cmp.Compare(index, c.Index) })
	switch {
	case ok:
		return i, true
	case index >= s.Index || index < s.Index-MaxClosed:
		return 0, false
	}
	s.Closed = slices.Insert(s.Closed, i, s.quiet(index))
	s.Closed = s.Closed[:min(len(s.Closed), MaxClosed)]
	return i, i < MaxClosed
}

// quiet returns a window that is over and in which nobody asked for anything.
func (s *State) quiet(index int64) Closed {
	c := Closed{Index: index, Limit: s.Limit}
	for _, t := range s.Standings {
		if t.Slice > 0 {
			c.Granted += t.Slice
			c.Usage = append(c.Usage, MemberUsage{Member: t.Member, Granted: t.Slice})
		}
	}
	return c
}

// count replaces what a member reported before. The list is copied. What is complete
// is not replaced by what is not: that was sent before.
func (c *Closed) count(member string, u Usage) {
	i, ok := slices.BinarySearchFunc(c.Usage, member, func(u MemberUsage, n string) int { return cmp.Compare(u.Member, n) })
	usage := make([]MemberUsage, len(c.Usage), len(c.Usage)+1)
	copy(usage, c.Usage)
	if !ok {
		usage = slices.Insert(usage, i, MemberUsage{Member: member})
	}
	if of := &usage[i]; u.Complete || !of.Complete {
		of.Admitted, of.Refused, of.Reported, of.Complete = u.Admitted, u.Refused, true, u.Complete
	}
	c.Usage = usage
}
