package twotier

// Reconfigure makes cfg effective for decisions that begin after it returned.
// Credits in hand stay good, for they were charged to the same counters, unless the
// new configuration leases none, no longer lets them carry over, or drains the
// store. Refusals are forgotten, since new parameters may grant what old ones did
// not.
func (l *Limiter) Reconfigure(cfg Config) {
	l.change.Lock()
	defer l.change.Unlock()
	l.adopt(cfg, l.settings.Load().gate)
}

// Swap is Reconfigure together with another store, for which s stands as in New.
// Credits, refusals and replies of the old store are never used again, and nothing
// is given back to it. Keys, what was learned of them, and the figures stay. The
// old store should be drained first: what it granted is still counted there only.
func (l *Limiter) Swap(cfg Config, s Store) {
	l.change.Lock()
	defer l.change.Unlock()
	l.adopt(cfg, gateOf(s, l.clock))
}

// adopt puts settings into force; change is held. A reply that arrives meanwhile is
// settled by the old settings before the credits of its key are taken away, or by
// the new ones afterwards.
func (l *Limiter) adopt(cfg Config, gate *Gate) {
	old := l.settings.Load()
	cfg.Scope = old.Scope
	next := newSettings(l, cfg, gate)
	if next.swapped = old.swapped; gate != old.gate {
		next.swapped = l.clock.now()
	}
	if old.Pending {
		next.since = old.since
	}
	l.settings.Store(next)
	l.SetHolders(cfg.Holders)
	l.keys.bound(next)
	l.watchIdle()
	switch {
	case next.gate != old.gate:
		l.eachKey(func(k *Key) { k.forget() })
	case next.Draining || next.Mode != Leased:
		l.recall()
	case old.Expiry == CarryOver && next.Expiry != CarryOver:
		// Nobody knows any more which of the credits were carried over.
		l.eachKey(func(k *Key) { k.surrender(l.clock.now()) })
	}
}

// forget drops all that the key knows of a store that is no longer in use.
func (k *Key) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.blank(past)
	if k.busy != nil {
		k.busy.queue.clear() // requests that wait for the old store take no answer of the new one
	}
	if k.extra != nil {
		k.extra.own, k.extra.of = nil, nil
		k.trim()
	}
}

// refusedByDrain returns the refusal of a limiter whose store is about to change.
func (l *Limiter) refusedByDrain(cfg *settings) Decision {
	d := l.refused(cfg)
	d.Source = FromDrain
	return d
}
