package twotier

import "github.com/weir-dev/weir/pkg/twotier/account"

// Settle replaces the cost of an admitted request by what it really was, at least
// 0, once that is known. An excess of the reservation becomes available again, as by
// Cancel. A shortfall is charged to the held credits, or else is a debt of the
// key: later decisions wait until it is paid, and report that in Paid. A debt is at
// most what the limit ever grants at once; more is forgiven, and a key that is idle
// long enough to be forgotten takes its debt along.
//
// Settle returns how much more has been charged than the cost, less than 0 when some
// was given back. It does not include what is owed. It does not block, has the effect
// of Cancel on a later call of either, and none where Cancel has none.
func (d *Decision) Settle(actual int64) (charged int64) {
	e, cost := d.from, d.cost
	d.from, d.cost = nil, 0
	switch {
	case e == nil || actual == cost:
		return 0
	case actual < cost:
		e.refund(d.Source, cost-max(actual, 0))
		return max(actual, 0) - cost
	default:
		return e.key.charge(e, actual-cost)
	}
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
func (k *Key) setPaid(d *Decision) {
	if k.rare == nil || k.rare.paid.Credits == 0 || d.Windows == nil || !k.rare.paid.Windows.SameWindows(*d.Windows) {
		return
	}
	d.Paid, k.rare.paid = k.rare.paid.Credits, account.Grant{}
	k.trimRare()
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
