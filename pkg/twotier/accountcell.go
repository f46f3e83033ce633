package twotier

import (
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/sizing"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// An accountCell keeps the account.State of a key in a form that requests spend from without a
// lock. The key's mu guards all but reading the lease.
type accountCell struct {
	lease  atomic.Pointer[lease] // never nil
	rare   *rareState            // nil when it is all zero
	sizer  sizing.Sizer          // learns the size of leases
	demand int64                 // cost served since the open windows began, held credits included

	fingerprint uint32 // of the lease, when it was last looked at for idleness
	unchanged   uint8  // how often in a row it was the same
	evicted     bool   // the key is no longer in the table: decide on the one that is
	tenanted    bool   // the name holds a tenant; never changes
	reserved    bool   // memory for rare is taken
}

// rareState holds what most keys never need.
type rareState struct {
	back         account.Grant       // of the balance
	local        *account.LocalShare // nil when nothing was admitted without the store; none with a tenant
	localBreaker *Breaker            // in front of the store that was unavailable for local
	debt         int64               // used beyond what was charged
	paid         account.Grant       // of the debt, not yet reported by a decision
}

// limiter returns the limiter that the key belongs to.
func (c *accountCell) limiter() *Limiter { return c.lease.Load().info.limiter }

// isSole reports whether the key is the limiter's own, or one that values share.
func (c *accountCell) isSole() bool {
	name := c.lease.Load().name
	return name == "" || !c.tenanted && store.IsShared(name)
}

// publish makes e the key's lease; mu is held. When the key was evicted, its
// name may belong to another key by now.
func (c *accountCell) publish(e *lease) {
	c.lease.Store(e)
	if !c.evicted {
		e.info.limiter.keys.update(e)
	}
}

// takeAccount takes all credits from the key and returns all it knows;
// mu is held. Put it back by setAccount, or the credits are lost.
func (c *accountCell) takeAccount() account.State {
	e := c.lease.Load()
	return c.accountOf(e, e.drain(), e.refused.Swap(0))
}

// restoreAccount undoes what takeAccount took from the lease, which is still the key's; mu is
// held.
func (c *accountCell) restoreAccount(a account.State) {
	e := c.lease.Load()
	e.credits.Add(a.Front.Credits)
	e.refused.Add(a.Refused)
}

// peekAccount is takeAccount without taking anything.
func (c *accountCell) peekAccount() account.State {
	e := c.lease.Load()
	return c.accountOf(e, e.credits.Load(), 0)
}

func (c *accountCell) accountOf(e *lease, credits, refused int64) account.State {
	a := account.State{Answer: e.info.answer(e.remaining), Sizer: c.sizer, Demand: c.demand, Refused: refused}
	a.Front = account.Grant{Credits: credits, Deadline: e.deadline, Carried: e.info.carried, Charge: e.info.charge()}
	if c.rare != nil {
		a.Back, a.Debt, a.Paid = c.rare.back, c.rare.debt, c.rare.paid
	}
	return a
}

// setAccount makes a the key's account under the settings; mu is held.
func (c *accountCell) setAccount(s *settings, a account.State, now int64) {
	c.publishAccount(c.newLease(s, a, now), a)
}

// publishAccount publishes the lease of an account; mu is held.
func (c *accountCell) publishAccount(e *lease, a account.State) {
	c.publish(e)
	if l := c.limiter(); a.Front.Credits+a.Back.Credits > 0 && l.settings.Load().returnsIdle(a.Sizer) {
		l.wakeScan()
	}
}

// newLease is setAccount without publishing the lease, which nobody else sees until it is published.
func (c *accountCell) newLease(s *settings, a account.State, now int64) *lease {
	if a.Back.Credits > 0 && !c.reserve() {
		a.Back = account.Grant{} // there is no memory for it
	}
	old := c.lease.Load()
	next := &lease{
		deadline: a.Front.Deadline, remaining: a.Remaining, name: old.name, key: old.key,
		info: old.info.limiter.infoOf(s, &a, now),
	}
	next.credits.Store(a.Front.Credits)
	next.refused.Store(a.Refused)
	c.sizer, c.demand = a.Sizer, a.Demand
	c.setRare(a)
	return next
}

// setRare keeps what few accounts have; mu is held.
func (c *accountCell) setRare(a account.State) {
	if a.Back.Credits == 0 {
		a.Back = account.Grant{}
	}
	if c.rare == nil && a.Back.Credits == 0 && a.Debt == 0 && a.Paid.Credits == 0 {
		return
	}
	c.reserve() // a debt is kept all the same
	x := c.ensureRare()
	x.back, x.debt, x.paid = a.Back, a.Debt, a.Paid
	c.trimRare()
}

// ensureRare returns the rare state, to be changed; mu is held.
func (c *accountCell) ensureRare() *rareState {
	if c.rare == nil {
		c.rare = new(rareState)
	}
	return c.rare
}

// trimRare forgets the rare state when it is all zero; mu is held.
func (c *accountCell) trimRare() {
	if x := c.rare; x != nil && x.back.Credits == 0 && x.local == nil && x.debt == 0 && x.paid.Credits == 0 {
		c.rare = nil
		c.release()
	}
}

// clear takes the held credits away from the key, and whatever it knows of
// the store, and returns those that may be given back.
func (k *Key) clear(now int64) []account.Grant {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clearLocked(now)
}

// clearLocked is clear with mu held.
func (c *accountCell) clearLocked(now int64) []account.Grant {
	s := c.limiter().settings.Load()
	a, back := c.takeAccount().Clear(now)
	open := s.Open()
	a.Balance, a.Answer = open.Balance, open.Answer
	c.setAccount(s, a, now)
	return back
}

// charge is account.State.Owe for what was charged to the lease e.
func (k *Key) charge(e *lease, units int64) (charged int64) {
	l := k.limiter()
	k.mu.Lock()
	for k.evicted { // another pays for the same value
		k.mu.Unlock()
		k = l.Key(split(k.lease.Load().name, k.tenanted))
		k.mu.Lock()
	}
	defer k.mu.Unlock()
	cfg, now := l.settings.Load(), l.clock.now()
	a, charged := k.takeAccount().Owe(now, units, account.LargestCost(cfg.paramsOf(k.value())), e.info.charge())
	k.setAccount(k.lease.Load().info.settings, a, now)
	return charged
}

// setPaid sets Paid on a decision on the windows from which debt was paid; mu is held.
func (c *accountCell) setPaid(d *Decision) {
	if c.rare == nil || c.rare.paid.Credits == 0 || d.Windows == nil || !c.rare.paid.Windows.SameWindows(*d.Windows) {
		return
	}
	d.Paid, c.rare.paid = c.rare.paid.Credits, account.Grant{}
	c.trimRare()
}

// owes returns the debt of the key.
func (k *Key) owes() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rare == nil {
		return 0
	}
	return k.rare.debt
}
