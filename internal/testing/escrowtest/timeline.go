package escrowtest

import (
	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A timeline makes the choices of one timeline.
type timeline struct{ suite.Dice }

// names are few, so that they meet, and as different as names can be.
var names = []string{"a", "b", "é", "\x00", "long-" + string(make([]byte, 200))}

// next returns what somebody may send at the instant now to an escrow that remembers
// s since then: honest, late, repeated, or what no honest one sends. All of it is
// valid.
func (d timeline) next(s escrow.State, since, now limiter.Instant) escrow.Command {
	switch d.Below(16) {
	case 0, 1, 2, 3:
		return d.take(&s)
	case 4, 5:
		return escrow.Command{Op: escrow.Return, Want: 1 + d.Below(12), Epoch: d.epoch(&s)}
	case 6, 7, 8:
		return escrow.Command{Op: escrow.Ask, Holder: suite.OneOf(d.Dice, names)}
	case 9:
		return escrow.Command{Op: escrow.Release, Holder: suite.OneOf(d.Dice, names), Keep: suite.OneOf(d.Dice, []int64{0, 0, 1, 7, limiter.MaxLimit})}
	case 10:
		return d.open(&s, since, now)
	case 11:
		return escrow.Command{Op: escrow.Peek}
	default:
		return d.fill(&s, now)
	}
}

// later returns an instant soon after now, seldom one before.
func (d timeline) later(now limiter.Instant) limiter.Instant {
	switch d.Below(16) {
	case 0:
		return now + 30 + limiter.Instant(d.Below(12))
	case 1:
		return now - limiter.Instant(d.Below(5))
	case 2, 3, 4, 5:
		return now + limiter.Instant(d.Below(8))
	}
	return now
}

func (d timeline) take(s *escrow.State) escrow.Command {
	left := s.Slice + s.Before + s.Granted - s.Taken
	want := min(max(1, suite.OneOf(d.Dice, []int64{1, 3, left, left + 1, left - 1, limiter.MaxLimit})), limiter.MaxLimit)
	return escrow.Command{Op: escrow.Take, Min: 1 + d.Below(want), Want: want}
}

func (d timeline) fill(s *escrow.State, now limiter.Instant) escrow.Command {
	c := escrow.Command{Op: escrow.Fill, Holder: s.Holder, At: now - limiter.Instant(d.Below(6)), ExpiresIn: d.life()}
	if c.Holder == "" || d.OneIn(8) {
		c.Holder = suite.OneOf(d.Dice, names)
	}
	if d.OneIn(12) {
		c.At = now + 1
	}
	c.Grant = ledger.Grant{
		Reason: ledger.Granted, Epoch: d.epoch(s),
		Seq:     max(0, suite.OneOf(d.Dice, []int64{s.Seq, s.Seq, s.Seq + 1, s.Floor, s.Floor + 1, s.Seq - 1})),
		Granted: min(limiter.MaxLimit, max(0, suite.OneOf(d.Dice, []int64{s.Granted, s.Granted + 5, s.Granted - 1, 9, limiter.MaxLimit}))),
		Slice:   suite.OneOf(d.Dice, []int64{0, 2, 4, 9, limiter.MaxLimit}),
	}
	if d.OneIn(4) {
		c.Grant.Reason = ledger.Reason(1 + d.Below(int64(ledger.Forfeited)))
	}
	return c
}

func (d timeline) open(s *escrow.State, since, now limiter.Instant) escrow.Command {
	c := escrow.Command{
		Op: escrow.Open, Epoch: d.epoch(s), Slice: suite.OneOf(d.Dice, []int64{0, 3, 5, limiter.MaxLimit}),
		At: now - limiter.Instant(d.Below(3)) + 1, ExpiresIn: d.life(),
	}
	c.Epoch.Index++
	age := suite.OneOf(d.Dice, []limiter.Micros{0, 0, c.At.Sub(since) - 1, c.At.Sub(since), 1 + c.At.Sub(since)})
	c.Age = min(max(0, age), limiter.MaxWindow)
	return c
}

// epoch returns one around the open one.
func (d timeline) epoch(s *escrow.State) ledger.Epoch {
	return ledger.Epoch{
		Index: max(0, s.Epoch.Index+suite.OneOf(d.Dice, []int64{0, 0, 0, 1, -1})),
		Term:  max(0, s.Epoch.Term+suite.OneOf(d.Dice, []int64{0, 0, 0, 1, -1})),
	}
}

func (d timeline) life() limiter.Micros {
	return suite.OneOf(d.Dice, []limiter.Micros{-5, 0, 1, 10, 40, limiter.Second, limiter.MaxWindow})
}
