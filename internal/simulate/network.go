package simulate

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A call is a command under way, or its answer.
type call struct {
	node   *node
	params limiter.Params
	done   func(r limiter.Result, ok bool) // nil when it is over
}

// send carries a command to the store and calls done once: with the answer, or with
// false when the store was not there or the time-out of the holder has passed.
func (w *world) send(n *node, p limiter.Params, c limiter.Command, done func(r limiter.Result, ok bool)) {
	w.trace.add(w.now, stepAsk, n.id, c.Want)
	w.audit.ask(w.store.clock.micros(w.now))
	sent := &call{n, p, done}
	w.events.add(n.clock.when(n.now()+int64(w.Network.Timeout)), func() { sent.finish(limiter.Result{}, false) })
	if w.lost(n) {
		return
	}
	w.flying = append(w.flying, sent)
	w.after(w.delay(), func() {
		if w.cut(n.id) {
			w.landed(sent)
			return
		}
		res, ok := w.store.apply(w.now, p, c)
		w.landed(sent)
		w.trace.add(w.now, stepStore, n.id, res.Granted)
		if w.lost(n) {
			return
		}
		w.after(w.delay(), func() {
			if !w.cut(n.id) {
				sent.finish(res, ok)
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
func (c *call) finish(r limiter.Result, ok bool) {
	done := c.done
	if done == nil {
		return
	}
	c.done = nil
	w := c.node.world
	if ok {
		w.trace.add(w.now, stepReply, c.node.id, r.Granted)
	} else {
		w.trace.add(w.now, stepFail, c.node.id, 0)
	}
	done(r, ok)
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
