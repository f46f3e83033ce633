package budgettest

import (
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Dice yields the choices that make a timeline.
type Dice func() uint64

// A Timeline is a sequence of calls for one budget, chosen at random and where rules
// meet: what honest holders send, late and repeated, and what no honest one does.
type Timeline struct {
	// Params are those of the next call, mostly.
	Params ledger.Params

	dice Dice
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
func NewTimeline(d Dice, now limiter.Instant, block int64) *Timeline {
	t := &Timeline{dice: d, now: now, slow: d.one(8), vouches: d.one(2)}
	t.Params = ledger.Params{Window: limiter.MinWindow, Block: block}
	t.edit()
	return t
}

// Next returns the next call to a budget that remembers s.
func (t *Timeline) Next(s ledger.State) Call {
	if t.dice.one(32) {
		t.edit()
	}
	c := Call{Now: t.later(s), Params: t.Params}
	if t.dice.one(24) { // a peer that is behind
		c.Params.Limit = min(c.Params.Limit+t.dice.below(5), limiter.MaxLimit)
	}
	c.Command = t.command(s)
	return c
}

// later moves the clock a little, seldom over the end of the window, or back.
func (t *Timeline) later(s ledger.State) limiter.Instant {
	window := max(t.Params.Window, s.Window)
	left := limiter.Instant(window) - t.now%limiter.Instant(window)
	choice := t.dice.below(32)
	if t.slow && choice < 4 {
		choice += 28 * min(1, t.dice.below(8))
	}
	switch choice {
	case 0, 1:
		t.now += left - 1 + limiter.Instant(t.dice.below(3))
	case 2:
		t.now += left + limiter.Instant(t.dice.below(12)*int64(window))
	case 3:
		return max(0, t.now-limiter.Instant(oneOf(t.dice, []int64{1, 2, int64(window), 3 * int64(window)})))
	case 4, 5, 6, 7, 8:
		t.now += limiter.Instant(t.dice.below(8))
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
	p.Limit = oneOf(d, []int64{1, 2, 7, 10, 40, 100, 1000, limiter.MaxLimit - 1, limiter.MaxLimit})
	p.Strategy, p.Slices = ledger.Strategy(d.below(3)), d.one(2)
	if d.one(4) {
		p.Window = oneOf(d, []limiter.Micros{limiter.MinWindow, limiter.MinWindow, limiter.MinWindow + 1, 3 * limiter.MinWindow, limiter.MaxWindow})
	}
	if p.Block > 0 {
		p.Block = 1 + d.below(p.Block)
	}
	p.Members = nil
	left := p.Limit
	for _, name := range names {
		if d.one(3) {
			continue
		}
		m := ledger.Member{Name: name, Weight: oneOf(d, []int64{1, 1, 2, 3, ledger.MaxWeight}), Borrowing: -1}
		m.Nominal = oneOf(d, []int64{0, 0, d.below(left + 1), left / 2})
		m.Kept = oneOf(d, []int64{0, m.Nominal, d.below(m.Nominal + 1)})
		m.Borrowing = oneOf(d, []int64{-1, -1, 0, d.below(p.Limit + 1)})
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
	c := ledger.Command{Op: ledger.Lease, Member: t.member(), Holder: fmt.Sprint("h'", d.below(holders))}
	c.Seq = 1 + d.below(30)
	c.Epoch = ledger.Epoch{Index: max(0, s.Index-1+d.below(3)), Term: s.Term}
	if d.one(12) {
		c.Epoch.Term = max(0, s.Term-2+d.below(4))
	}
	if d.below(4) > 0 {
		c.Epoch.Index = s.Index
	}
	c.Granted = oneOf(d, []int64{0, 0, d.below(t.Params.Limit + 1)})
	if len(s.Accounts) > 0 && !t.slow && d.below(4) > 0 {
		t.known(&c, oneOf(d, s.Accounts))
	}
	c.Demand = oneOf(d, []int64{0, 0, 1, t.Params.Limit / 3, d.below(t.Params.Limit + 1), t.Params.Limit})
	c.Weight = oneOf(d, []int64{0, 0, 0, 1, 5, ledger.MaxWeight})
	if c.Weight > 0 && d.one(2) {
		c.Tenants = ledger.Tenants{Met: oneOf(d, []int64{0, 1, t.Params.Limit / 3, d.below(t.Params.Limit + 1)}), Unmet: 1 + d.below(c.Weight)}
	}
	if i := slices.IndexFunc(s.Standings, func(of ledger.Standing) bool { return of.Member == c.Member }); i >= 0 {
		c.Slice = oneOf(d, []int64{s.Standings[i].Next, s.Standings[i].Next, s.Standings[i].Slice, 0, d.below(t.Params.Limit + 1)})
	}
	if d.one(6) {
		c.Slice = ledger.NoSlice
	}
	if t.vouches {
		c.Born, c.List = oneOf(d, []int64{s.Term, s.Term, s.Term, max(0, s.Term-1), 0}), oneOf(d, []int64{7, 7, 7, 7, 7, 8, 0})
	}
	t.ask(&c, s)
	return c
}

// member is one of them, seldom a stranger.
func (t *Timeline) member() string {
	if t.slow && t.dice.below(8) > 0 {
		return t.Params.Members[0].Name
	}
	if t.dice.one(24) {
		return "nobody"
	}
	return oneOf(t.dice, t.Params.Members).Name
}

// known makes the command one that the holder may send, late or in time.
func (t *Timeline) known(c *ledger.Command, a ledger.Account) {
	c.Member, c.Holder = a.Member, a.Holder
	c.Seq = max(1, a.Seq+t.dice.below(5)-1)
	c.Granted = oneOf(t.dice, []int64{a.Granted, a.Granted, max(0, a.Granted-1), a.Granted / 2, c.Granted})
}

// ask fills in what the command is for.
func (t *Timeline) ask(c *ledger.Command, s ledger.State) {
	d := t.dice
	switch d.below(8) {
	case 0:
		c.Op = ledger.Report
		for back := range int64(ledger.MaxClosed + 2) {
			if len(c.Usage) < ledger.MaxClosed && d.one(3) && s.Index >= back {
				c.Usage = append(c.Usage, ledger.Usage{
					Index: s.Index - back, Admitted: d.below(50), Refused: d.below(9), Complete: d.one(2),
				})
			}
		}
	case 1:
		c.Op = ledger.Release
	default:
		c.Want = oneOf(d, []int64{1, 1, 2, 5, t.Params.Limit, 1 + t.Params.Limit/4, 1 + d.below(t.Params.Limit)})
		c.Min = oneOf(d, []int64{1, 1, c.Want, 1 + d.below(c.Want)})
	}
}

// below returns a number from 0 up to n, without n.
func (d Dice) below(n int64) int64 { return int64(d() % uint64(n)) }

func (d Dice) one(n int64) bool { return d.below(n) == 0 }

func oneOf[T any](d Dice, list []T) T { return list[d.below(int64(len(list)))] }
