package monotonic

import "time"

// WatchInterval is how often the watchdog looks where the kernel does not report
// resumes. The actions between a resume and the next look are the residue that remains
// of a suspension.
const WatchInterval = 10 * time.Millisecond

// A watcher is a user of the watchdog.
type watcher struct {
	jumped func() // nil: it reads the clock anyway
}

// Watch keeps the watchdog running until the returned function is called, once. Unless
// it is nil, jumped is called after each jump of the clock, by the watchdog: it must
// not block, and call no method of the clock but Now. The last to stop returns when the
// watchdog has ended.
func (c *Clock) Watch(jumped func()) (stop func()) {
	w := &watcher{jumped}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers == nil {
		c.watchers = map[*watcher]struct{}{}
	}
	c.watchers[w] = struct{}{}
	c.post()
	return func() {
		c.mu.Lock()
		delete(c.watchers, w)
		relieved := c.post()
		c.mu.Unlock()
		relieved.end()
	}
}

// Listen has the kernel report resumes until stop is called, once. The watchdog then
// looks when the kernel reports one and at no other time, so that an idle process stays asleep. An
// error says that this kernel does not report them; the watchdog goes on looking every
// WatchInterval. The zero Clock has nothing to listen for.
func (c *Clock) Listen() (stop func(), err error) {
	if c.suspended == nil {
		return func() {}, nil
	}
	resumes, err := listen()
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for resumes.await() {
			c.look()
		}
	}()
	c.listen(true)
	return func() {
		c.listen(false)
		resumes.close()
		<-done
	}, nil
}

// listen notes whether the kernel reports resumes.
func (c *Clock) listen(reported bool) {
	c.mu.Lock()
	c.reported = reported
	relieved := c.post()
	c.mu.Unlock()
	relieved.end()
}

// post begins a patrol where one is needed and there is none; mu is held. One that is
// not needed any more is returned: its end may have to wait for a look, which takes mu.
func (c *Clock) post() (relieved *patrol) {
	switch needed := len(c.watchers) > 0 && !c.reported && c.suspended != nil; {
	case needed && c.patrol == nil:
		c.patrol = begin(c.look)
	case !needed:
		relieved, c.patrol = c.patrol, nil
	}
	return relieved
}

// A patrol looks every WatchInterval.
type patrol struct {
	stop chan struct{}
	done chan struct{} // closed when it has ended
}

func begin(look func()) *patrol {
	p := &patrol{make(chan struct{}), make(chan struct{})}
	go p.walk(look)
	return p
}

func (p *patrol) walk(look func()) {
	defer close(p.done)
	tick := time.NewTicker(WatchInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			look()
		}
	}
}

// end returns when the patrol has ended, if there is one.
func (p *patrol) end() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.done
}
