package budgettest

import (
	"fmt"
	"slices"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Timeline is a sequence of calls for one budget, chosen at random and where rules
// meet: what honest holders send, late and repeated, and what no honest one does.
type Timeline struct {
	// Params are those of the next call, mostly.
	Params ledger.Params

	dice suite.Dice
	now  limiter.Instant
	slow bool // windows are long, so that a member comes to have many holders
	// vouches says that members say how old the budget is.
	vouches bool
}

// A Call is one command at an instant of the coordinator's clock.
type Call struct {
	Now     limiter.Instant
	Params  ledger.Params
	Command ledger.Command
}

// NewTimeline begins a timeline at an instant, of parameters with that block.
func NewTimeline(d suite.Dice, now limiter.Instant, block int64) *Timeline {
	t := &Timeline{dice: d, now: now, slow: d.OneIn(8), vouches: d.OneIn(2)}
	t.Params = ledger.Params{Window: limiter.MinWindow, Block: block}
	t.edit()
	return t
}

// Next returns the next call to a budget that remembers s.
func (t *Timeline) Next(s ledger.State) Call {
	if t.dice.OneIn(32) {
		t.edit()
	}
	c := Call{Now: t.later(s), Params: t.Params}
	if t.dice.OneIn(24) { // a peer that is behind
		c.Params.Limit = min(c.Params.Limit+t.dice.Below(5), limiter.MaxLimit)
	}
	c.Command = t.command(s)
	return c
}

// later moves the clock a little, seldom over the end of the window, or back.
func (t *Timeline) later(s ledger.State) limiter.Instant {
	window := max(t.Params.Window, s.Window)
	left := limiter.Instant(window) - t.now%limiter.Instant(window)
	choice := t.dice.Below(32)
	if t.slow && choice < 4 {
		choice += 28 * min(1, t.dice.Below(8))
	}
	switch choice {
	case 0, 1:
		t.now += left - 1 + limiter.Instant(t.dice.Below(3))
	case 2:
		t.now += left + limiter.Instant(t.dice.Below(12)*int64(window))
	case 3:
		return max(0, t.now-limiter.Instant(suite.OneOf(t.dice, []int64{1, 2, int64(window), 3 * int64(window)})))
	case 4, 5, 6, 7, 8:
		t.now += limiter.Instant(t.dice.Below(8))
	case 9, 10:
		t.now += limiter.Instant(int64(left) / 3)
	}
	return t.now
}

// names of members are few, so that they meet, and as different as names can be.
var names = []string{"A", "a", "a/1", "b", "eu-west", "é", "日本'\"{}\\"}

// edit makes other parameters that are valid.
func (t *Timeline) edit() {
	d, p := t.dice, &t.Params
	p.Limit = suite.OneOf(d, []int64{1, 2, 7, 10, 40, 100, 1000, limiter.MaxLimit - 1, limiter.MaxLimit})
	p.Strategy, p.Slices = ledger.Strategy(d.Below(3)), d.OneIn(2)
	if d.OneIn(4) {
		p.Window = suite.OneOf(d, []limiter.Micros{limiter.MinWindow, limiter.MinWindow, limiter.MinWindow + 1, 3 * limiter.MinWindow, limiter.MaxWindow})
	}
	if p.Block > 0 {
		p.Block = 1 + d.Below(p.Block)
	}
	p.Members = nil
	left := p.Limit
	for _, name := range names {
		if d.OneIn(3) {
			continue
		}
		m := ledger.Member{Name: name, Weight: suite.OneOf(d, []int64{1, 1, 2, 3, ledger.MaxWeight}), Borrowing: -1}
		m.Nominal = suite.OneOf(d, []int64{0, 0, d.Below(left + 1), left / 2})
		m.Kept = suite.OneOf(d, []int64{0, m.Nominal, d.Below(m.Nominal + 1)})
		m.Borrowing = suite.OneOf(d, []int64{-1, -1, 0, d.Below(p.Limit + 1)})
		left -= m.Nominal
		p.Members = append(p.Members, m)
	}
	if p.Members == nil {
		p.Members = []ledger.Member{{Name: "b", Weight: 1, Borrowing: -1}}
	}
}

func (t *Timeline) command(s ledger.State) ledger.Command {
	d := t.dice
	holders := int64(3)
	if t.slow {
		holders = ledger.MaxHolders + 2
	}
	c := ledger.Command{Op: ledger.Lease, Member: t.member(), Holder: fmt.Sprint("h'", d.Below(holders))}
	c.Seq = 1 + d.Below(30)
	c.Epoch = ledger.Epoch{Index: max(0, s.Index-1+d.Below(3)), Term: s.Term}
	if d.OneIn(12) {
		c.Epoch.Term = max(0, s.Term-2+d.Below(4))
	}
	if d.Below(4) > 0 {
		c.Epoch.Index = s.Index
	}
	c.Granted = suite.OneOf(d, []int64{0, 0, d.Below(t.Params.Limit + 1)})
	if len(s.Accounts) > 0 && !t.slow && d.Below(4) > 0 {
		t.known(&c, suite.OneOf(d, s.Accounts))
	}
	c.Demand = suite.OneOf(d, []int64{0, 0, 1, t.Params.Limit / 3, d.Below(t.Params.Limit + 1), t.Params.Limit})
	c.Weight = suite.OneOf(d, []int64{0, 0, 0, 1, 5, ledger.MaxWeight})
	if c.Weight > 0 && d.OneIn(2) {
		c.Tenants = ledger.Tenants{Met: suite.OneOf(d, []int64{0, 1, t.Params.Limit / 3, d.Below(t.Params.Limit + 1)}), Unmet: 1 + d.Below(c.Weight)}
	}
	if i := slices.IndexFunc(s.Standings, func(of ledger.Standing) bool { return of.Member == c.Member }); i >= 0 {
		c.Slice = suite.OneOf(d, []int64{s.Standings[i].Next, s.Standings[i].Next, s.Standings[i].Slice, 0, d.Below(t.Params.Limit + 1)})
	}
	if d.OneIn(6) {
		c.Slice = ledger.NoSlice
	}
	if t.vouches {
		c.Born, c.List = suite.OneOf(d, []int64{s.Term, s.Term, s.Term, max(0, s.Term-1), 0}), suite.OneOf(d, []int64{7, 7, 7, 7, 7, 8, 0})
	}
	t.ask(&c, s)
	return c
}

// member is one of them, seldom a stranger.
func (t *Timeline) member() string {
	if t.slow && t.dice.Below(8) > 0 {
		return t.Params.Members[0].Name
	}
	if t.dice.OneIn(24) {
		return "nobody"
	}
	return suite.OneOf(t.dice, t.Params.Members).Name
}

// known makes the command one that the holder may send, late or in time.
func (t *Timeline) known(c *ledger.Command, a ledger.Account) {
	c.Member, c.Holder = a.Member, a.Holder
	c.Seq = max(1, a.Seq+t.dice.Below(5)-1)
	c.Granted = suite.OneOf(t.dice, []int64{a.Granted, a.Granted, max(0, a.Granted-1), a.Granted / 2, c.Granted})
}

// ask fills in what the command is for.
func (t *Timeline) ask(c *ledger.Command, s ledger.State) {
	d := t.dice
	switch d.Below(8) {
	case 0:
		c.Op = ledger.Report
		for back := range int64(ledger.MaxClosed + 2) {
			if len(c.Usage) < ledger.MaxClosed && d.OneIn(3) && s.Index >= back {
				c.Usage = append(c.Usage, ledger.Usage{
					Index: s.Index - back, Admitted: d.Below(50), Refused: d.Below(9), Complete: d.OneIn(2),
				})
			}
		}
	case 1:
		c.Op = ledger.Release
	default:
		c.Want = suite.OneOf(d, []int64{1, 1, 2, 5, t.Params.Limit, 1 + t.Params.Limit/4, 1 + d.Below(t.Params.Limit)})
		c.Min = suite.OneOf(d, []int64{1, 1, c.Want, 1 + d.Below(c.Want)})
	}
}
