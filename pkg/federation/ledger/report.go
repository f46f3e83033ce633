package ledger

import (
	"cmp"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// report notes what a member counted. It is answered as a command that asks for
// nothing, whatever its number.
func (s *State) report(p *Params, m Member, c *Command) Grant {
	s.attend(p, m, c)
	s.Closed = slices.Clone(s.Closed)
	for _, u := range c.Usage {
		if i, ok := s.closed(p, c, u.Index); ok {
			s.Closed[i].count(c.Member, u)
		}
	}
	return s.answer(p, m, c, Granted)
}

// closed returns where a window that is over is remembered. One in which nobody asked
// for anything was not noticed: members may have used their slices of it.
func (s *State) closed(p *Params, c *Command, index int64) (int, bool) {
	i, ok := slices.BinarySearchFunc(s.Closed, index, func(o Closed, index int64) int { return cmp.Compare(index, o.Index) })
	switch {
	case ok:
		return i, true
	case index >= s.Index, index < s.Index-MaxClosed, i == MaxClosed:
		return 0, false
	case limiter.Instant(index*int64(s.Window)) < c.Memory.Since:
		return 0, false
	}
	closed := make([]Closed, 0, len(s.Closed)+1)
	closed = append(closed, s.Closed[:i]...)
	closed = append(closed, s.quiet(p, index))
	closed = append(closed, s.Closed[i:]...)
	s.Closed = closed[:min(len(closed), MaxClosed)]
	return i, true
}

// member returns the usage of a member, which is added when it is not there.
func (c *Closed) member(name string) *MemberUsage {
	i, ok := slices.BinarySearchFunc(c.Usage, name, func(u MemberUsage, n string) int { return cmp.Compare(u.Member, n) })
	if !ok {
		c.Usage = slices.Insert(c.Usage, i, MemberUsage{Member: name})
	}
	return &c.Usage[i]
}

// use adds to what a member had of the window.
func (c *Closed) use(name string, units int64) {
	c.member(name).Granted += units
	c.Granted += units
}

// count replaces what a member reported before. The list is copied. A complete report
// is not replaced by an incomplete one: that was sent before.
func (c *Closed) count(name string, u Usage) {
	c.Usage = slices.Clone(c.Usage)
	if of := c.member(name); u.Complete || !of.Complete {
		of.Admitted, of.Refused, of.Reported, of.Complete = u.Admitted, u.Refused, true, u.Complete
	}
}
