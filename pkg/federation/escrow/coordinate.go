package escrow

import (
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// prepare numbers a command for the coordinator. A window that is over is reported as it
// was: the coordinator knows best whether it is.
func (s *State) prepare(holder string, r *Result) {
	if s.Holder == "" {
		s.Holder = holder
	}
	s.Seq++
	r.Holder, r.Seq, r.Told, r.From, r.Slice = s.Holder, s.Seq, s.Granted, s.Epoch, s.Next
}

// release takes off what is not taken, but for what is to be kept. Only what the
// present term granted can be given back.
func (s *State) release(keep int64) {
	s.Granted -= max(0, min(s.Granted, s.remaining()-keep))
}

// fill takes what the coordinator answered; without an epoch that is nothing. The totals
// of one epoch only grow, but for what a release takes off, so of two answers the larger
// total is the later one.
func (s *State) fill(c *Command) {
	g := &c.Grant
	if c.Holder != s.Holder || g.Seq > s.Seq || g.Epoch.Term == 0 {
		return
	}
	s.hear(g)
	if g.Seq <= s.Floor || older(g.Epoch, s.Epoch) {
		return
	}
	switch {
	case g.Epoch.Index > s.Epoch.Index:
		s.begin(g.Epoch, 0)
	case g.Epoch.Term > s.Epoch.Term:
		s.Before = min(s.Before+s.Granted, limiter.MaxLimit)
		s.Epoch, s.Granted = g.Epoch, 0
	}
	s.Granted = max(s.Granted, g.Granted)
	if c.At <= s.Latest {
		s.Ends = max(s.Ends, c.At.Add(c.ExpiresIn))
	}
}

// hear takes what the coordinator sends of slices. An answer to an earlier command
// never raises what a command acknowledged.
func (s *State) hear(g *ledger.Grant) {
	if g.Seq == s.Seq {
		s.Next = g.Slice
	}
	s.Next = min(s.Next, g.Slice)
}

// openSlice begins a window that nobody has asked the coordinator for.
func (s *State) openSlice(c *Command) {
	ends, began := c.At.Add(c.ExpiresIn), c.At.Add(-c.Age)
	if c.Epoch.Index <= s.Epoch.Index || c.At > s.Latest || ends <= s.Latest || began <= c.Since {
		return
	}
	s.begin(ledger.Epoch{Index: c.Epoch.Index, Term: s.Epoch.Term}, ends)
	s.Slice = min(c.Slice, s.Next)
}

// older reports whether a is before b.
func older(a, b ledger.Epoch) bool {
	return a.Index < b.Index || a.Index == b.Index && a.Term < b.Term
}
