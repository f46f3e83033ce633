package concurrency

// An epoch is the time between two fences of a guard.
type epoch struct {
	guard   *Guard
	aborted chan struct{} // closed to abort what is in flight
}

// fence stops to use the share when it is over. Requests in flight end or are asked to,
// unless the guard goes on by itself.
func (g *Guard) fence(now int64) {
	if !g.share.expire(now, g.config.Margin) {
		return
	}
	g.law.Alone()
	if g.local(now) {
		return
	}
	g.fences++
	g.epoch = &epoch{g, g.epoch.aborted} // for what is in flight, which may be aborted later
	g.abort()
}

// abort asks what is in flight to end, if that is what a fence does.
func (g *Guard) abort() {
	if n := g.table.InFlight(); n > 0 && g.config.OnFenced == Abort {
		g.aborted += n
		close(g.epoch.aborted)
		g.epoch = &epoch{g, make(chan struct{})}
	}
}

// ceiling returns how many may be in flight now.
func (g *Guard) ceiling(now int64) int64 {
	g.fence(now)
	inferred := g.law.Ceiling(g.instant(now))
	switch {
	case g.share.live:
		return min(g.share.units, inferred)
	case g.local(now):
		return inferred
	default:
		return 0
	}
}

// local reports whether the guard admits by what it infers alone, because the
// coordinator does not answer. Any other failure is not an outage and admits nothing.
func (g *Guard) local(now int64) bool {
	return g.config.OnOutage == LocalOnly && !g.share.live && g.silent(now)
}

// silent reports whether the coordinator does not answer: it could not be reached, or
// it has let the guard wait long enough to retry.
func (g *Guard) silent(now int64) bool {
	return g.link.outage || g.link.awaited && now-g.link.sent >= int64(g.config.Heartbeat.MinInterval)
}
