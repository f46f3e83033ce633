package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// isAlone reports whether a window of the counter is open that began on the local
// share; mu is held.
func (k *Key) isAlone(now int64) bool {
	if !k.tenanted {
		return k.began(now)
	}
	whole := k.whole()
	if whole == nil {
		return false
	}
	whole.mu.Lock()
	defer whole.mu.Unlock()
	return whole.began(now)
}

// whole returns the key at which the share of the tenants of the counter is kept, nil
// when nothing was admitted on it. It is in the table as long as its window is open.
func (k *Key) whole() *Key {
	l, value := k.limiter(), k.value()
	if value == "" {
		return l.single
	}
	if e := l.keys.find(value, ""); e != nil {
		return e.key
	}
	return nil
}

// began reports whether the key has begun a window that is open on the local share;
// mu is held.
func (k *Key) began(now int64) bool {
	if k.extra == nil || k.extra.own == nil {
		return false
	}
	gate := k.limiter().settings.Load().gate
	clock := gate.storeClock()
	return k.remembers(gate, clock, now).covers(clock, now)
}

// remembers returns what the key admitted without the store behind the gate, and forgets
// what is over; mu is held.
func (k *Key) remembers(gate *Gate, clock offset, now int64) own {
	if k.extra == nil || k.extra.own == nil {
		return own{}
	}
	var o own
	if k.extra.of == gate { // else another store serves now
		var floor limiter.Instant
		o, floor = k.extra.own.remember(clock, now)
		gate.forgets(floor)
	}
	if o == (own{}) {
		k.extra.own, k.extra.of = nil, nil
		k.trim()
		return o
	}
	*k.extra.own = o
	return o
}

// admitAlone decides a request on the local share; mu is held. The tenants of a
// counter have one share together, which is kept at the key without a tenant.
func (k *Key) admitAlone(cfg *settings, cost, now int64) Decision {
	if !k.tenanted {
		return k.share(cfg, cost, now)
	}
	for {
		whole := k.whole()
		if whole == nil {
			whole = k.limiter().keys.whole(k.value())
		}
		whole.mu.Lock()
		if !whole.evicted { // it is replaced by one that is not
			defer whole.mu.Unlock()
			return whole.share(cfg, cost, now)
		}
		whole.mu.Unlock()
	}
}

// share decides a request on the share of the key; mu is held.
func (k *Key) share(cfg *settings, cost, now int64) Decision {
	l := k.limiter()
	holders := l.holders.Load()
	if holders == 0 {
		return l.withoutStore(cfg, now) // a share of unknown size is none
	}
	params := cfg.ParamsOf(k.value())
	v, o, res := k.goAlone(cfg, params, holders, cost, now)
	if res.promised {
		l.promised.Add(1)
	}
	if !res.allowed && !res.spent { // what the store has left is not known
		return l.withoutStore(cfg, now)
	}
	d := Decision{
		Allowed:    res.allowed,
		Source:     FromLocalShare,
		Limit:      res.limit,
		Remaining:  res.remaining,
		ResetAfter: time.Duration(nanos(res.resets)),
		Delay:      time.Duration(res.delay),
		Windows:    l.windowsAt(params, v.clock, now),
		LocalShare: res.share,
	}
	if !res.allowed {
		d.Reason, d.RetryAfter = limiter.Exhausted, time.Duration(nanos(res.wait))
		return d
	}
	x := k.more()
	x.own, x.of = &o, cfg.gate
	return d
}

// goAlone decides by the share, and returns what is admitted on it from then on; mu is held.
func (k *Key) goAlone(cfg *settings, p limiter.Params, holders, cost, now int64) (view, own, localResult) {
	for {
		v := cfg.gate.granted(k.storeKey(cfg))
		v.swapped = max(cfg.swapped, cfg.gate.wayLost())
		o, res := k.remembers(cfg.gate, v.clock, now).admit(p, holders, v, now, cost)
		if !res.allowed || cfg.gate.begins(v, p, now) {
			return v, o, res
		}
	}
}

// withoutStore returns the refusal of a limiter that cannot ask the store.
func (l *Limiter) withoutStore(cfg *settings, now int64) Decision {
	d := l.refused(cfg)
	d.Windows = l.windowsAt(cfg.Params, cfg.gate.storeClock(), now)
	d.RetryAfter = time.Duration(max(cfg.gate.retryAt(cfg.Scope)-now, int64(firstRetry)))
	return d
}

// refused returns the refusal of a limiter that asks nobody.
func (l *Limiter) refused(cfg *settings) Decision {
	return Decision{
		Source:     FromFailureAction,
		Reason:     limiter.Exhausted,
		Limit:      largestCost(cfg.Params),
		RetryAfter: relent,
		Windows:    l.windows.latest.Load(),
	}
}

// windowsAt returns the store's windows at the own instant now, as well as its
// clock is known, and nil when it is not.
func (l *Limiter) windowsAt(p limiter.Params, clock offset, now int64) *limiter.Windows {
	if !clock.known {
		return nil
	}
	at := clock.middle(now)
	var w limiter.Windows
	for _, r := range p.Rates {
		w.Open[w.N] = r.WindowAt(at)
		w.N++
	}
	return l.share(w)
}
