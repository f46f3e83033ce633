package concurrency

import "time"

// turn does what is due, and returns how long until something is again.
func (g *Guard) turn() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.fence(now)
	if now >= g.due() {
		g.send(now)
	}
	g.pass(now)
	g.timed = g.next(now)
	return time.Duration(g.timed - now)
}

// due returns when the next beat has to be sent.
func (g *Guard) due() int64 {
	h, l := g.config.Heartbeat, &g.link
	interval, soon := l.sent+int64(h.Interval), l.sent+int64(h.MinInterval)
	switch {
	case l.awaited:
		return interval
	case l.failures > 0:
		return l.sent + int64(backoff(h, l.failures))
	case l.changed:
		return soon
	case !h.Eager:
		return interval
	case g.eager.unconfirmed, g.eager.frees(g.share.units, g.held()):
		return soon
	case g.eager.pulls(g.share.units, l.grant, int(2*h.Interval/h.MinInterval)):
		return min(interval, max(soon, l.free))
	case l.free != past && g.share.units < even(l.grant):
		return min(interval, max(soon, l.free))
	default:
		return interval
	}
}

// backoff returns how long after a beat the next is sent when that many in a row failed.
func backoff(h Heartbeat, failures int) time.Duration {
	d := h.MinInterval
	for ; failures > 1 && d < h.Interval; failures-- {
		d *= 2
	}
	return min(d, h.Interval)
}

// next returns when something is due: a beat, the end of the share, that the
// coordinator counts as silent, or that a request waited long enough.
func (g *Guard) next(now int64) int64 {
	next := g.due()
	if g.share.live {
		next = min(next, g.share.ends(g.config.Margin))
	} else if g.config.OnOutage == LocalOnly && g.link.awaited && !g.silent(now) {
		next = min(next, g.link.sent+int64(g.config.Heartbeat.MinInterval))
	}
	if at, ok := g.table.Deadline(); ok {
		next = min(next, g.nanos(at))
	}
	return next
}

// hurry wakes the guard up when something became due earlier than it will wake up for.
func (g *Guard) hurry(now int64) {
	if next := g.next(now); next < g.timed {
		g.timed = next
		g.wake()
	}
}

// wake makes the guard look at what is due.
func (g *Guard) wake() {
	select {
	case g.woken <- struct{}{}:
	default:
	}
}
