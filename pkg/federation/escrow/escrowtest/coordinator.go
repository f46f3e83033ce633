package escrowtest

import (
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Coordinator is the least that escrows need of one: it grants each window up to its
// limit to whoever asks first. Its slice is what each member may use without asking,
// and may change between two commands.
type Coordinator struct {
	Slice  int64
	limit  int64
	window limiter.Micros

	term, index int64
	before      int64 // what memories before may have granted of the window
	accounts    map[string]*account
	members     map[string]*member
}

type account struct{ seq, granted int64 }

// A member may be using sliced units of the window without asking, and next of later
// ones.
type member struct{ sliced, next int64 }

// NewCoordinator returns one that remembers everything.
func NewCoordinator(limit, slice int64, window limiter.Micros) *Coordinator {
	return &Coordinator{
		Slice: slice, limit: limit, window: window, term: 1,
		accounts: map[string]*account{}, members: map[string]*member{},
	}
}

// Forget loses what was granted to whom, but for how much of the window that was
// altogether: it was set aside.
func (c *Coordinator) Forget() {
	for _, a := range c.accounts {
		c.before += a.granted
	}
	c.term++
	c.accounts = map[string]*account{}
}

// Index returns the window that is open at an instant of the coordinator's clock.
func (c *Coordinator) Index(now limiter.Instant) int64 { return int64(now) / int64(c.window) }

// End returns when a window is over.
func (c *Coordinator) End(index int64) limiter.Instant {
	return limiter.Instant((index + 1) * int64(c.window))
}

// Apply is ledger.State.Step as far as an escrow can tell.
func (c *Coordinator) Apply(now limiter.Instant, cmd ledger.Command) ledger.Grant {
	c.open(c.Index(now))
	a, m := of(c.accounts, cmd.Holder), of(c.members, cmd.Member)
	open := ledger.Epoch{Index: c.index, Term: c.term}
	reason := ledger.Granted
	switch {
	case cmd.Seq <= a.seq:
		reason = ledger.Stale
		m.next = max(m.next, c.Slice)
	case cmd.Op == ledger.Lease:
		c.lease(a, cmd, cmd.Epoch == open)
	case cmd.Epoch == open:
		a.granted = min(a.granted, cmd.Granted)
	default:
		reason = ledger.Forfeited
	}
	if cmd.Seq > a.seq {
		a.seq = cmd.Seq
		m.next = max(cmd.Slice, c.Slice)
	}
	return ledger.Grant{
		Reason: reason, Seq: a.seq, Epoch: open, Granted: a.granted, Slice: c.Slice, NowSlice: m.sliced,
		Limit: c.limit, Remaining: c.left(), ExpiresIn: c.End(c.index).Sub(now), Now: now,
	}
}

// lease grants up to the total that is wanted, at least the least of it or nothing.
func (c *Coordinator) lease(a *account, cmd ledger.Command, known bool) {
	had := int64(0)
	if known {
		had = cmd.Granted
	}
	if more := min(had+cmd.Want-a.granted, c.left()); more > 0 && a.granted+more >= had+cmd.Min {
		a.granted += more
	}
}

func (c *Coordinator) open(index int64) {
	if index == c.index {
		return
	}
	c.index, c.before = index, 0
	for _, m := range c.members {
		m.sliced = m.next
	}
	for _, a := range c.accounts {
		a.granted = 0
	}
}

// left returns the units that nobody was granted.
func (c *Coordinator) left() int64 {
	left := c.limit - c.before
	for _, m := range c.members {
		left -= m.sliced
	}
	for _, a := range c.accounts {
		left -= a.granted
	}
	return max(0, left)
}

// of returns what a map has of a name, or begins it.
func of[T any](list map[string]*T, name string) *T {
	if list[name] == nil {
		list[name] = new(T)
	}
	return list[name]
}
