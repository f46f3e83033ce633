package twotier

import "time"

// watchInterval is how often the watchdog looks. Credits admitted between a
// resume and the next look are the residue that remains of a suspension.
const watchInterval = 10 * time.Millisecond

// watch advances the clock by the time the machine was suspended, as measured
// since the watch began, until stop is closed. Every deadline counted on the
// clock then comes as early as it should: leases whose windows ended meanwhile
// die, replies under way are late, and what is still valid stays.
func (c *clock) watch(suspended func() time.Duration, stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	before := time.Duration(c.slept.Load()) - suspended()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		// Readings wander by microseconds; a suspension takes longer than that.
		slept := before + suspended()
		if slept-time.Duration(c.slept.Load()) >= time.Millisecond {
			c.slept.Store(int64(slept))
		}
	}
}
