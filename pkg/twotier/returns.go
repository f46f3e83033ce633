package twotier

import (
	"context"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// maxReturns bounds the returns that are in progress at once when many keys give
// back what they hold.
const maxReturns = 16

// refund puts cost of a decision back that was charged to the lease. Cost paid from
// credits goes to the credits that are charged to the same, whichever lease has them
// by now; when the key has none any more, it is lost. It is account.Balance.Refund.
func (e *lease) refund(s Source, cost int64) {
	k, charge := e.key, e.info.charge()
	if s == FromStore {
		e.info.limiter.returnAsync(k, e.info.settings.breaker, account.Grant{Credits: cost, Charge: charge})
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	front := k.lease.Load()
	switch {
	case front.info.settings.breaker != e.info.settings.breaker:
		return // another store has granted what is here
	case k.evicted:
		if !e.info.carries { // and is certain to have been charged to its windows
			e.info.limiter.returnAsync(k, e.info.settings.breaker, account.Grant{Credits: cost, Charge: charge})
		}
		return
	}
	if front.info.charge().Alike(charge) {
		front.credits.Add(cost) // without draining it: requests find all at any time
		k.payWaiting(front)
		front.info.limiter.wakeScan()
		return
	}
	if front.info.behind > 0 {
		a := k.takeAccount()
		a.Balance, _ = a.Refund(charge, cost)
		k.setAccount(front.info.settings, a, front.info.limiter.clock.now())
	}
}

// recall takes the credits of all keys away and gives them back to the store
// without waiting for it.
func (l *Limiter) recall() {
	breaker, all := l.settings.Load().breaker, l.takeAll()
	if len(all) > 0 {
		l.start(func() { l.sendReturns(l.ctx, breaker, all) })
	}
}

// returnAll returns the unspent credits of all keys.
func (l *Limiter) returnAll(ctx context.Context) {
	l.sendReturns(ctx, l.settings.Load().breaker, l.takeAll())
}

// takeAll takes the credits of all keys away.
func (l *Limiter) takeAll() []keyGrant {
	now := l.clock.now()
	var all []keyGrant
	l.eachKey(func(k *Key) {
		for _, h := range k.clear(now) {
			all = append(all, keyGrant{k, h})
		}
	})
	return all
}

// A keyGrant is credits that a key no longer holds.
type keyGrant struct {
	key *Key
	account.Grant
}

// sendReturns returns credits to the store, several keys' at a time, until ctx is
// done.
func (l *Limiter) sendReturns(ctx context.Context, breaker *Breaker, all []keyGrant) {
	l.clock.several(len(all), maxReturns, func(i int) {
		if ctx.Err() == nil {
			l.sendReturn(ctx, all[i].key, breaker, all[i].Grant)
		}
	})
}

// returnAsync returns credits to the store without waiting for it.
func (l *Limiter) returnAsync(k *Key, breaker *Breaker, h account.Grant) {
	if h.Credits > 0 {
		l.start(func() { l.sendReturn(l.ctx, k, breaker, h) })
	}
}

// sendReturn returns credits to the store behind the breaker, if that is still the one.
// It is never tried again: a return that was applied although its answer got lost
// would be credited twice.
func (l *Limiter) sendReturn(ctx context.Context, k *Key, breaker *Breaker, h account.Grant) {
	cfg := l.settings.Load()
	if cfg.breaker != breaker {
		return
	}
	r, _ := l.ask(ctx, k, cfg, limiter.Command{Op: limiter.Return, Want: h.Credits, Windows: h.Windows, At: h.At})
	if r.calls > 0 && r.Reason == limiter.Granted { // as far as one knows, without an answer
		k.noteReturned(h.Credits)
	}
}

// noteReturned notes that the store has the units back, which it may grant to requests
// that it refused before. A call that is in progress may have been decided before, too,
// so that is seen to when it ends.
func (k *Key) noteReturned(units int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inflight != nil {
		k.inflight.returned += units
	}
	e, now := k.lease.Load(), k.limiter().clock.now()
	if now < e.info.Until && !e.info.Final {
		k.setAccount(e.info.settings, k.takeAccount().Returned(units), now)
	}
}

// returnedUnits returns how many units the store has got back since the key is busy; mu is
// held.
func (k *Key) returnedUnits() int64 {
	if k.inflight == nil { // since another store serves
		return 0
	}
	return k.inflight.returned
}

// returnedSince returns how many units the store has got back since the call began;
// mu is held.
func (k *Key) returnedSince(c *call) int64 { return max(0, k.returnedUnits()-c.returned) }
