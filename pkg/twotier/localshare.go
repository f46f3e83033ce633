package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// onLocalShare reports whether a window of the counter is open that began on the local
// share; mu is held.
func (k *Key) onLocalShare(now int64) bool {
	if !k.tenanted {
		return k.hasLocalWindow(now)
	}
	counter := k.counterKey()
	if counter == nil {
		return false
	}
	counter.mu.Lock()
	defer counter.mu.Unlock()
	return counter.hasLocalWindow(now)
}

// counterKey returns the key at which the share of the tenants of the counter is kept, nil
// when nothing was admitted on it. It is in the table as long as its window is open.
func (k *Key) counterKey() *Key {
	l, value := k.limiter(), k.value()
	if value == "" {
		return l.single
	}
	if e := l.keys.find(value, ""); e != nil {
		return e.key
	}
	return nil
}

// hasLocalWindow reports whether the key began a window on its local share that is still open;
// mu is held.
func (k *Key) hasLocalWindow(now int64) bool {
	if k.rare == nil || k.rare.local == nil {
		return false
	}
	breaker := k.limiter().settings.Load().breaker
	clock := breaker.storeClock()
	return k.localState(breaker, clock, now).Covers(clock, now)
}

// localState returns what the key admitted locally while the store was unavailable, behind the breaker, and forgets
// what is over; mu is held.
func (k *Key) localState(breaker *Breaker, clock account.ClockOffset, now int64) account.LocalShare {
	if k.rare == nil || k.rare.local == nil {
		return account.LocalShare{}
	}
	var s account.LocalShare
	if k.rare.localBreaker == breaker { // else another store serves now
		var floor limiter.Instant
		s, floor = k.rare.local.Prune(clock, now)
		breaker.raiseFloor(floor)
	}
	if s == (account.LocalShare{}) {
		k.rare.local, k.rare.localBreaker = nil, nil
		k.trimRare()
		return s
	}
	*k.rare.local = s
	return s
}

// decideLocally decides a request on the local share; mu is held. The tenants of a
// counter have one share together, which is kept at the key without a tenant.
func (k *Key) decideLocally(cfg *settings, cost, now int64) Decision {
	if !k.tenanted {
		return k.spendLocalShare(cfg, cost, now)
	}
	for {
		counter := k.counterKey()
		if counter == nil {
			counter = k.limiter().keys.counterKey(k.value())
		}
		counter.mu.Lock()
		if !counter.evicted { // it is replaced by one that is not
			defer counter.mu.Unlock()
			return counter.spendLocalShare(cfg, cost, now)
		}
		counter.mu.Unlock()
	}
}

// spendLocalShare decides a request on the share of the key; mu is held.
func (k *Key) spendLocalShare(cfg *settings, cost, now int64) Decision {
	l := k.limiter()
	holders := l.holders.Load()
	if holders == 0 {
		return l.withoutStore(cfg, now) // the size of the share is not known
	}
	params := cfg.paramsOf(k.value())
	v, s, res := k.tryLocalShare(cfg, params, holders, cost, now)
	if res.Promised {
		l.promised.Add(1)
	}
	d := l.localDecision(cfg, params, v, res, now)
	if !d.Allowed {
		return d
	}
	if !k.reserve() { // so it cannot be remembered here
		shared := l.keys.sharedFor(k.value())
		shared.mu.Lock()
		defer shared.mu.Unlock()
		return shared.spendLocalShare(cfg, cost, now)
	}
	x := k.ensureRare()
	x.local, x.localBreaker = &s, cfg.breaker
	return d
}

// foreseeLocally returns how decideLocally would decide; mu is held.
func (k *Key) foreseeLocally(cfg *settings, cost, now int64) Decision {
	l, counter, holders, params := k.limiter(), k, k.limiter().holders.Load(), cfg.paramsOf(k.value())
	if k.tenanted {
		if counter = k.counterKey(); counter == nil {
			counter = newKey(l, k.value(), false)
		}
		counter.mu.Lock()
		defer counter.mu.Unlock()
	}
	if holders == 0 {
		return l.withoutStore(cfg, now)
	}
	v, _, res := counter.admitLocally(cfg, params, holders, cost, now)
	d := l.localDecision(cfg, params, v, res, now)
	if d.Allowed {
		d.Remaining += cost // which was not taken
	}
	return d
}

// localDecision returns the decision that the share comes to.
func (l *Limiter) localDecision(cfg *settings, p limiter.Params, v account.StoreTime, res account.LocalDecision, now int64) Decision {
	if !res.Allowed && !res.Spent { // what the store has left is not known
		return l.withoutStore(cfg, now)
	}
	d := Decision{
		Allowed:    res.Allowed,
		Source:     FromLocalShare,
		Limit:      res.Limit,
		Remaining:  res.Remaining,
		ResetAfter: time.Duration(account.Nanos(res.Resets)),
		Delay:      time.Duration(res.Delay),
		Windows:    l.windowsAt(p, v.Clock, now),
		LocalShare: res.Share,
	}
	if !res.Allowed {
		d.Reason, d.RetryAfter = limiter.Exhausted, time.Duration(account.Nanos(res.Wait))
	}
	return d
}

// tryLocalShare decides by the share, and returns what is admitted on it from then on; mu is held.
func (k *Key) tryLocalShare(cfg *settings, p limiter.Params, holders, cost, now int64) (account.StoreTime, account.LocalShare, account.LocalDecision) {
	for {
		v, s, res := k.admitLocally(cfg, p, holders, cost, now)
		if !res.Allowed || cfg.breaker.beginLocal(v, p, now) {
			return v, s, res
		}
	}
}

// admitLocally is tryLocalShare without beginning to admit; mu is held.
func (k *Key) admitLocally(cfg *settings, p limiter.Params, holders, cost, now int64) (account.StoreTime, account.LocalShare, account.LocalDecision) {
	v := cfg.breaker.storeTime(k.storeKey(cfg))
	v.Swapped = max(cfg.swapped, cfg.breaker.disconnectedAt())
	s, res := k.localState(cfg.breaker, v.Clock, now).Admit(p, holders, v, now, cost)
	return v, s, res
}

// withoutStore returns the refusal of a limiter that cannot ask the store.
func (l *Limiter) withoutStore(cfg *settings, now int64) Decision {
	d := l.refused(cfg)
	d.Windows = l.windowsAt(cfg.Params, cfg.breaker.storeClock(), now)
	d.RetryAfter = time.Duration(max(cfg.breaker.retryAt(cfg.Scope)-now, int64(minRetry)))
	return d
}

// refused returns the refusal of a limiter that asks nobody.
func (l *Limiter) refused(cfg *settings) Decision {
	return Decision{
		Source:     FromFailureAction,
		Reason:     limiter.Exhausted,
		Limit:      account.LargestCost(cfg.Params),
		RetryAfter: account.DefaultRefusal,
		Windows:    l.windows.latest.Load(),
	}
}

// windowsAt returns the store's windows at the local instant now, as well as its
// clock is known, and nil when it is not.
func (l *Limiter) windowsAt(p limiter.Params, clock account.ClockOffset, now int64) *limiter.Windows {
	if !clock.Known {
		return nil
	}
	at := clock.Midpoint(now)
	var w limiter.Windows
	for _, r := range p.Rates {
		w.Open[w.N] = r.WindowAt(at)
		w.N++
	}
	return l.internWindows(w)
}
