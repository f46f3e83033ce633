package twotier

// fetchAhead asks for the next lease without waiting for it, when the credits of e
// have come down to the low-water mark. It does nothing while a call is under way,
// and asks once: a grant that comes late is dropped, and an error is for the
// request to find out that needs the store.
func (k *Key) fetchAhead(e *lease) {
	if !k.mu.TryLock() {
		return // the holder of the lock is about the same, or the next request sees to it
	}
	defer k.mu.Unlock()
	l := k.limiter()
	cfg, now := l.settings.Load(), l.clock.now()
	switch {
	case k.lease.Load() != e || k.busy != nil && k.busy.call != nil: // it is being done
	case k.evicted: // nobody would find what it brings
	case cfg.Mode != Leased || cfg.Draining || cfg.LowWater == 0 || k.isAlone(now) || l.slow.outlasts(cfg):
	case k.extra != nil && k.extra.back.Held(now) > 0:
	case cfg.closed() != nil:
	default:
		k.callBeside(cfg, cfg.AskAhead(k.look(), cfg.ParamsOf(k.value()), now, l.holders.Load()), 1)
	}
}
