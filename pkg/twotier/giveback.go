package twotier

import (
	"context"

	"github.com/weir-dev/weir/pkg/limiter"
)

// returnsAtOnce bounds the returns that are under way at once when many keys give
// back what they hold.
const returnsAtOnce = 16

// Cancel takes the decision back because the request was not let through after
// all: the cost becomes available again, in what it was charged to and nowhere
// else. It does not block. It has no effect on a refusal, the second time, and on
// what was admitted without the store. Cancel of a copy counts as another time:
// cancel one copy only.
func (d *Decision) Cancel() {
	e, cost := d.from, d.cost
	d.from, d.cost = nil, 0
	if e != nil {
		e.refund(d.Source, cost)
	}
}

// refund puts cost of a decision back that was charged to the lease. Cost paid from
// credits goes to the credits that are charged to the same, whichever lease has them
// by now; when the key has none any more, it is lost. It is Hand.Refund.
func (e *lease) refund(s Source, cost int64) {
	k, charge := e.key, e.terms.charge()
	if s == FromStore {
		e.terms.limiter.giveBack(k, e.terms.settings.gate, Holding{Credits: cost, Charge: charge})
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	front := k.lease.Load()
	switch {
	case front.terms.settings.gate != e.terms.settings.gate:
		return // another store has granted what is here
	case k.evicted:
		if !e.terms.carries { // and is certain to have been charged to its windows
			e.terms.limiter.giveBack(k, e.terms.settings.gate, Holding{Credits: cost, Charge: charge})
		}
		return
	}
	if front.terms.charge().Alike(charge) {
		front.credits.Add(cost) // without draining it: requests find all at any time
		k.payWaiting(front)
		front.terms.limiter.look()
		return
	}
	if front.terms.behind > 0 {
		a := k.account()
		a.Hand, _ = a.Refund(charge, cost)
		k.keep(front.terms.settings, a, front.terms.limiter.clock.now())
	}
}

// recall takes the credits of all keys away and gives them back to the store
// without waiting for it.
func (l *Limiter) recall() {
	gate, all := l.settings.Load().gate, l.collect()
	if len(all) > 0 {
		l.start(func() { l.sendAllBack(l.ctx, gate, all) })
	}
}

// giveAllBack returns the unspent credits of all keys.
func (l *Limiter) giveAllBack(ctx context.Context) {
	l.sendAllBack(ctx, l.settings.Load().gate, l.collect())
}

// collect takes the credits of all keys away.
func (l *Limiter) collect() []handful {
	now := l.clock.now()
	var all []handful
	l.eachKey(func(k *Key) {
		for _, h := range k.surrender(now) {
			all = append(all, handful{k, h})
		}
	})
	return all
}

// A handful is credits that a key no longer holds.
type handful struct {
	key *Key
	Holding
}

// sendAllBack returns credits to the store, several keys' at a time, until ctx is
// done.
func (l *Limiter) sendAllBack(ctx context.Context, gate *Gate, all []handful) {
	l.clock.several(len(all), returnsAtOnce, func(i int) {
		if ctx.Err() == nil {
			l.sendBack(ctx, all[i].key, gate, all[i].Holding)
		}
	})
}

// giveBack returns credits to the store without waiting for it.
func (l *Limiter) giveBack(k *Key, gate *Gate, h Holding) {
	if h.Credits > 0 {
		l.start(func() { l.sendBack(l.ctx, k, gate, h) })
	}
}

// sendBack returns credits to the store behind the gate, if that is still the one.
// It is never tried again: a return that was applied although its answer got lost
// would be credited twice.
func (l *Limiter) sendBack(ctx context.Context, k *Key, gate *Gate, h Holding) {
	cfg := l.settings.Load()
	if cfg.gate != gate {
		return
	}
	r, _ := l.ask(ctx, k, cfg, limiter.Command{Op: limiter.Return, Want: h.Credits, Windows: h.Windows, At: h.At})
	if r.calls > 0 && r.Reason == limiter.Granted { // as far as one knows, without an answer
		k.gotBack(h.Credits)
	}
}

// gotBack notes that the store has the units back, which it may grant to requests
// that it refused before. A call that is under way may have been decided before, too,
// so that is seen to when it ends.
func (k *Key) gotBack(units int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy != nil {
		k.busy.returned += units
	}
	e, now := k.lease.Load(), k.limiter().clock.now()
	if now < e.terms.Until && !e.terms.Final {
		k.keep(e.terms.settings, k.account().Returned(units), now)
	}
}

// returned returns how many units the store has got back since the key is busy; mu is
// held.
func (k *Key) returned() int64 {
	if k.busy == nil { // since another store serves
		return 0
	}
	return k.busy.returned
}

// returnedSince returns how many units the store has got back since the call began;
// mu is held.
func (k *Key) returnedSince(c *call) int64 { return max(0, k.returned()-c.returned) }
