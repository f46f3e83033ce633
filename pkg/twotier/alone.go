package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// isAlone reports whether a window is open that began on the local share; mu is
// held.
func (k *Key) isAlone(now int64) bool {
	if k.own == nil {
		return false
	}
	clock, _, _ := k.limiter.gate.storeClock()
	if k.own.over(clock, now) {
		k.own = nil
		return false
	}
	return k.own.covers(clock, now)
}

// admitAlone decides a request on the local share; mu is held.
func (k *Key) admitAlone(cfg *Config, cost, now int64) Decision {
	l := k.limiter
	holders := l.holders.Load()
	if holders == 0 {
		return l.withoutStore(cfg, now) // a share of unknown size is none
	}
	clock, seen, _ := l.gate.storeClock()
	var o own
	if k.own != nil {
		o = *k.own
	}
	o, res := o.admit(cfg.Params.Rates, holders, clock, seen, now, cost)
	d := Decision{
		Allowed:    res.allowed,
		Source:     FromLocalShare,
		Limit:      res.limit,
		Remaining:  res.remaining,
		ResetAfter: time.Duration(nanos(res.resets)),
		Windows:    l.windowsAt(cfg, clock, now),
		LocalShare: res.share,
	}
	if !res.allowed {
		d.Reason, d.RetryAfter = limiter.Exhausted, time.Duration(nanos(res.wait))
		return d
	}
	k.own = &o
	return d
}

// withoutStore returns the refusal of a limiter that cannot ask the store.
func (l *Limiter) withoutStore(cfg *Config, now int64) Decision {
	clock, _, retryAt := l.gate.storeClock()
	d := l.refused(cfg)
	d.Windows = l.windowsAt(cfg, clock, now)
	d.RetryAfter = time.Duration(max(retryAt-now, int64(firstRetry)))
	return d
}

// refused returns the refusal of a limiter that asks nobody.
func (l *Limiter) refused(cfg *Config) Decision {
	return Decision{
		Source:     FromFailureAction,
		Reason:     limiter.Exhausted,
		Limit:      cfg.tightest().Limit,
		RetryAfter: relent,
		Windows:    l.windows.latest.Load(),
	}
}

// outrun returns the refusal of a request that others were faster than, again
// and again.
func (l *Limiter) outrun(cfg *Config) Decision {
	d := l.refused(cfg)
	d.Source = FromLease
	return d
}

// tooLarge returns the refusal of a request that costs more than the rate r will
// ever grant.
func (l *Limiter) tooLarge(r limiter.Rate) Decision {
	return Decision{Source: FromLease, Reason: limiter.TooLarge, Limit: r.Limit, Windows: l.windows.latest.Load()}
}

// windowsAt returns the store's windows at the own instant now, as well as its
// clock is known, and nil when it is not.
func (l *Limiter) windowsAt(cfg *Config, clock offset, now int64) *limiter.Windows {
	if !clock.known {
		return nil
	}
	at := clock.span(now)
	t := at.from + (at.to-at.from)/2
	var w limiter.Windows
	for _, r := range cfg.Params.Rates {
		w.Open[w.N] = limiter.OpenWindow{Rate: r, Index: windowOf(t, r.Window)}
		w.N++
	}
	return l.share(w)
}
