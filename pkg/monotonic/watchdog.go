package monotonic

import "time"

// WatchInterval is how often the watchdog looks. What is done between a resume and the
// next look is the residue that remains of a suspension.
const WatchInterval = 10 * time.Millisecond

// A watcher is one who needs the watchdog.
type watcher struct {
	jumped func() // nil: it reads the clock anyway
}

// Watch keeps the watchdog running until the returned function is called, once. Unless
// it is nil, jumped is called after each jump of the clock, by the watchdog: it must
// not block. The last to stop returns when the watchdog has ended.
func (c *Clock) Watch(jumped func()) (stop func()) {
	w := &watcher{jumped}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers == nil {
		c.watchers = map[*watcher]struct{}{}
	}
	c.watchers[w] = struct{}{}
	if len(c.watchers) == 1 && c.suspended != nil {
		c.stop, c.done = make(chan struct{}), make(chan struct{})
		go c.watch(c.suspended(), c.stop, c.done)
	}
	return func() { c.leave(w) }
}

func (c *Clock) leave(w *watcher) {
	c.mu.Lock()
	delete(c.watchers, w)
	var done chan struct{}
	if len(c.watchers) == 0 && c.suspended != nil {
		close(c.stop)
		done = c.done
	}
	c.mu.Unlock()
	if done != nil {
		<-done
	}
}

// watch advances the clock by what the machine was suspended longer than before, until
// stop is closed. Every deadline counted on the clock then comes as early as it should.
func (c *Clock) watch(before time.Duration, stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(WatchInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		// Readings wander by microseconds; a suspension takes longer than that.
		now := c.suspended()
		if slept := now - before; slept >= time.Millisecond {
			before = now
			c.Skip(slept)
			c.tell()
		}
	}
}

// tell calls the watchers.
func (c *Clock) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		if w.jumped != nil {
			w.jumped()
		}
	}
}
