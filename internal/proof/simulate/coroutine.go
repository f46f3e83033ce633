package simulate

import "iter"

// A coroutine runs jobs that are written as if they could block, and gives way to
// the run instead. One coroutine runs at a time, and which one is next is up to the
// run and never to a scheduler.
type coroutine struct {
	job   func() // nil while the coroutine is idle
	next  func() (struct{}, bool)
	stop  func()
	give  func(struct{}) bool
	ended bool
}

func newCoroutine() *coroutine {
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(give func(struct{}) bool) {
		c.give = give
		for c.job != nil {
			c.job()
			c.job = nil
			if !give(struct{}{}) {
				return
			}
		}
	})
	return c
}

// wait gives way until the coroutine is resumed. It returns false when it is ended.
func (c *coroutine) wait() bool { return !c.ended && c.give(struct{}{}) && !c.ended }

// end makes the job run to its end without giving way any more.
func (c *coroutine) end() {
	c.ended = true
	c.stop()
}

// A crew is the coroutines of a run. Those that have done their job wait for another
// one.
type crew struct {
	idle    []*coroutine
	running *coroutine // nil while the run itself is
}

// start runs a job until it ends or waits for the first time.
func (w *crew) start(job func()) {
	var c *coroutine
	if last := len(w.idle) - 1; last >= 0 {
		c, w.idle = w.idle[last], w.idle[:last]
	} else {
		c = newCoroutine()
	}
	c.job = job
	w.resume(c)
}

// resume runs a coroutine that waits, until its job ends or waits again.
func (w *crew) resume(c *coroutine) {
	before := w.running
	w.running = c
	c.next()
	w.running = before
	if c.job == nil {
		w.idle = append(w.idle, c)
	}
}

// dismiss ends the idle coroutines.
func (w *crew) dismiss() {
	for _, c := range w.idle {
		c.end()
	}
	w.idle = nil
}
