package twotier

import (
	"errors"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// settings are the configuration in force and the store it is in force for. They are
// immutable: another configuration or store is other settings, and what was asked
// under the old ones is known by that.
type settings struct {
	Config
	*account.Rules
	breaker *Breaker
	blank   *leaseInfo // of a key that nothing is known of
	// swapped is the instant until which another store than the breaker's was asked; past
	// when none ever was.
	swapped      int64
	pendingSince time.Time
}

func newSettings(l *Limiter, cfg Config, breaker *Breaker) *settings {
	s := &settings{Config: cfg.normalize(), breaker: breaker, swapped: account.Past, pendingSince: time.Now()}
	s.Rules = rulesOf(&s.Config)
	s.blank = &leaseInfo{limiter: l, settings: s, lowWater: neverLow, ends: account.Past, Refusal: account.NoRefusal}
	return s
}

// rulesOf returns the rules by which the accounts of a normalized configuration are kept.
func rulesOf(c *Config) *account.Rules {
	return account.NewRules(account.Config{
		Params: c.Params, Leases: c.Mode == Leased,
		Learns: c.Size.Type != Fixed, Predicts: c.Size.Type == Predictive,
		Batch: c.Size.Batch, Min: c.Size.Min, Max: c.Size.Max,
		CarryOver: c.Expiry == CarryOver, LowWater: c.LowWater,
	})
}

// paramsOf returns the parameters of a value of the key.
func (s *settings) paramsOf(value string) limiter.Params {
	if p, ok := s.Overrides[value]; ok {
		return p
	}
	return s.Params
}

var errPending = errors.New("the limit is new, and the controller has not been able to ask the store in which memory it begins")

// unavailable returns why no take is asked for at present, nil when one may be.
func (s *settings) unavailable() error {
	if s.Pending {
		return &store.UnavailableError{Store: "the store of " + s.Scope.String(), Cause: errPending}
	}
	return s.breaker.unavailable()
}

// Reconfigure makes cfg effective for decisions that begin after it returned.
// Held credits stay good, for they were charged to the same counters, unless the
// new configuration leases none, no longer lets them carry over, or drains the
// store. Refusals are forgotten, since new parameters may grant what old ones did
// not.
func (l *Limiter) Reconfigure(cfg Config) {
	l.configMu.Lock()
	defer l.configMu.Unlock()
	l.adopt(cfg, l.settings.Load().breaker)
}

// Swap is Reconfigure together with another store, for which s stands as in New.
// Credits, refusals and replies of the old store are never used again, and nothing
// is given back to it. Keys, what was learned of them, and the figures stay. The
// old store should be drained first: what it granted is still counted there only.
func (l *Limiter) Swap(cfg Config, s Store) {
	l.configMu.Lock()
	defer l.configMu.Unlock()
	l.adopt(cfg, breakerOf(s, l.clock))
}

// adopt puts settings into force; configMu is held. A reply that arrives meanwhile is
// settled by the old settings before the credits of its key are taken away, or by
// the new ones afterwards.
func (l *Limiter) adopt(cfg Config, breaker *Breaker) {
	old := l.settings.Load()
	cfg.Scope = old.Scope
	next := newSettings(l, cfg, breaker)
	if next.swapped = old.swapped; breaker != old.breaker {
		next.swapped = l.clock.now()
	}
	if old.Pending {
		next.pendingSince = old.pendingSince
	}
	l.settings.Store(next)
	l.SetHolders(cfg.Holders)
	l.keys.setBounds(next)
	l.configureScan()
	switch {
	case next.breaker != old.breaker:
		l.eachKey(func(k *Key) { k.dropStore() })
	case next.Draining || next.Mode != Leased:
		l.recall()
	case old.Expiry == CarryOver && next.Expiry != CarryOver:
		// Nobody knows any more which of the credits were carried over.
		l.eachKey(func(k *Key) { k.clear(l.clock.now()) })
	}
}

// dropStore drops all that the key knows of a store that is no longer in use.
func (k *Key) dropStore() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clearLocked(account.Past)
	if k.inflight != nil {
		k.inflight.queue.clear() // requests that wait for the old store take no answer of the new one
	}
	if k.rare != nil {
		k.rare.local, k.rare.localBreaker = nil, nil
		k.trimRare()
	}
}

// refusedByDrain returns the refusal of a limiter whose store is about to change.
func (l *Limiter) refusedByDrain(cfg *settings) Decision {
	d := l.refused(cfg)
	d.Source = FromDrain
	return d
}
