package simulate

import (
	"slices"
	"time"
)

// A call is a message under way, or its answer.
type call struct {
	message
	done func(a answer, ok bool) // nil when it is over
}

// send carries a message to the keeper of the counters and calls done once: with the answer,
// or with false when nobody was there or the time-out of the holder has passed.
func (w *world) send(m message, done func(a answer, ok bool)) {
	n := m.node
	w.trace.add(w.now, stepAsk, n.id, m.command.Want)
	if !m.look {
		w.audit.ask(w.time())
	}
	sent := &call{m, done}
	w.events.add(n.clock.when(n.now()+int64(w.Network.Timeout)), func() { sent.finish(answer{}, false) })
	if w.lost(n) {
		return
	}
	w.flying = append(w.flying, sent)
	w.after(w.delay(), func() {
		if w.cut(n.id) {
			w.landed(sent)
			return
		}
		a, ok := w.keeper.apply(m)
		w.landed(sent)
		w.trace.add(w.now, stepStore, n.id, a.Granted)
		if w.lost(n) {
			return
		}
		w.after(w.delay(), func() {
			if !w.cut(n.id) {
				sent.finish(a, ok)
			}
		})
	})
}

// landed notes that a command has reached the store, or never will.
func (w *world) landed(c *call) {
	at := slices.Index(w.flying, c)
	w.flying = slices.Delete(w.flying, at, at+1)
	w.recount()
}

// finish ends a call the first time.
func (c *call) finish(a answer, ok bool) {
	done := c.done
	if done == nil {
		return
	}
	c.done = nil
	w := c.node.world
	if ok {
		w.trace.add(w.now, stepReply, c.node.id, a.Granted)
	} else {
		w.trace.add(w.now, stepFail, c.node.id, 0)
	}
	done(a, ok)
}

func (w *world) lost(n *node) bool {
	return w.cut(n.id) || w.Network.Loss > 0 && w.network.Float64() < w.Network.Loss
}

// delay returns how long a message takes one way.
func (w *world) delay() time.Duration {
	d := w.Network.RTT / 2
	if half := int64(w.Network.Jitter) / 2; half > 0 {
		d += time.Duration(w.network.Int64N(2*half+1) - half)
	}
	if w.Network.Stall > 0 && w.network.Float64() < w.Network.Stall {
		d += w.Network.Stalled
	}
	return max(0, d)
}
