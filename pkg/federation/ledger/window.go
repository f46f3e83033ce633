package ledger

import (
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Epoch returns the window that is open, by the memory that serves it. It is zero
// before the first command.
func (s State) Epoch() Epoch { return Epoch{Index: s.Index, Term: s.Term} }

func (s *State) start() limiter.Instant { return limiter.Instant(s.Index * int64(s.Window)) }
func (s *State) end() limiter.Instant   { return s.start().Add(s.Window) }

// forgot reports whether the open window began before the memory did, and memories before
// may have granted units of it.
func (s *State) forgot(p *Params, c *Command) bool {
	return s.start() < c.Memory.Since && !s.vouched(p, c)
}

// refuses returns why a command cannot be applied at now, and when it may be. A
// window that was served is never served again, whatever the clock shows.
func (s *State) refuses(p *Params, now limiter.Instant, c *Command) (Reason, limiter.Micros) {
	served := max(s.Latest, s.start())
	switch {
	case now < served:
		return Behind, served.Sub(now)
	case c.Memory.Term < s.Term:
		return Behind, p.Window
	case s.Term > 0 && s.Window != p.Window && now < s.end():
		return Mismatched, s.end().Sub(now)
	}
	return 0, 0
}

// advance opens the window of now for the memory of c. The units that an earlier
// memory granted of a window that is still open, or had set aside, count as granted.
func (s *State) advance(p *Params, now limiter.Instant, c *Command) {
	index := int64(now) / int64(p.Window)
	later := c.Memory.Term > s.Term
	switch {
	case s.Window != p.Window || index != s.Index:
		s.open(p, index, c)
	case later:
		s.Before = max(s.Reserved, s.Before+s.granted())
		s.Accounts, s.Vouches = nil, nil
	}
	if later {
		s.Standings = slices.Clone(s.Standings)
		for i := range s.Standings {
			s.Standings[i].Told = s.Index // the memory before may have sent it until now
		}
	}
	s.Term, s.Latest, s.Limit = c.Memory.Term, now, min(s.Limit, p.Limit)
}

// open ends the window before and begins another, with nothing granted yet.
func (s *State) open(p *Params, index int64, c *Command) {
	same, following := s.Window == p.Window, index == s.Index+1
	if same {
		s.close(p, c)
	} else {
		s.Closed = nil // named by indices of another length
	}
	standings := make([]Standing, 0, len(p.Members))
	for _, t := range s.Standings {
		if _, known := p.member(t.Member); !known && t.Slice == 0 && t.Next == 0 {
			continue
		}
		t.Before, t.Demand, t.Slice = t.Demand, 0, t.Next
		if !same || !following {
			t.Before = 0
		}
		if !same {
			t.Told = index
		}
		standings = append(standings, t)
	}
	s.Window, s.Index, s.Limit = p.Window, index, p.Limit
	s.Before, s.Reserved, s.Accounts, s.Vouches, s.Standings = 0, 0, nil, nil, standings
}

// close remembers the open window as one that is over, unless what was granted of it
// is not known.
func (s *State) close(p *Params, c *Command) {
	if s.forgot(p, c) {
		return
	}
	over := s.quiet(p, s.Index)
	over.Granted += s.Before
	for i := range over.Usage {
		granted := s.grantedTo(over.Usage[i].Member)
		over.Usage[i].Granted += granted
		over.Granted += granted
	}
	s.Closed = append([]Closed{over}, s.Closed[:min(len(s.Closed), MaxClosed-1)]...)
}

// quiet returns a window in which nothing was granted but slices. A member never heard
// of may have used one by what a memory before sent it.
func (s *State) quiet(p *Params, index int64) Closed {
	over := Closed{Index: index, Limit: s.Limit}
	for _, t := range s.Standings {
		over.use(t.Member, t.Slice)
	}
	for _, m := range p.Members {
		if _, heard := s.standing(m.Name); !heard && p.slice(m) > 0 {
			over.use(m.Name, p.slice(m))
		}
	}
	return over
}
