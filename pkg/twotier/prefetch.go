package twotier

// prefetch asks for the next lease asynchronously when the credits of e
// have come down to the low-water mark. It does nothing while a call is in progress,
// and asks once: a grant that comes late is dropped, and an error is for the
// request to find out that needs the store.
func (k *Key) prefetch(e *lease) {
	if !k.mu.TryLock() {
		return // the holder of the lock is about the same, or the next request sees to it
	}
	defer k.mu.Unlock()
	l := k.limiter()
	cfg, now := l.settings.Load(), l.clock.now()
	switch {
	case k.lease.Load() != e || k.inflight != nil && k.inflight.call != nil: // it is being done
	case k.evicted: // nobody would find what it brings
	case cfg.Mode != Leased || cfg.Draining || cfg.LowWater == 0 || k.onLocalShare(now) || l.slow.tooSlow(cfg):
	case k.rare != nil && k.rare.back.Held(now) > 0:
	case cfg.unavailable() != nil:
	default:
		k.callAsync(cfg, cfg.Prefetch(k.peekAccount(), cfg.paramsOf(k.value()), now, l.holders.Load()), 1)
	}
}
