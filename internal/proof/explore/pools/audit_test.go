package pools_test

import (
	"errors"
	"fmt"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// handle has the coordinator decide on a beat.
func (f *fleet) handle(w *world, n int, b beat, reply func(answer)) {
	c := b.command
	before, known := w.pool.find(c.Holder)
	left := f.left(w, before)
	stale := known && c.Seq <= before.Seq && left > 0
	strangers := f.strangers(w, n) || c.InFlight < w.holders[n].inflight || w.pool.quarantined(f.now(w))
	state := w.pool.state.Clone()
	g, err := f.rules.step(state, f.policies[b.policy], f.now(w), f.renumber(w, n, c, known && left > 0))
	if err != nil {
		w.broken = err
		return
	}
	w.pool = after(state, f.now(w))
	bound := w.bound
	f.settle(w)
	if !f.loose {
		before.Expires = limiter.Micros(left) * tick
		w.broken = errors.Join(f.ignored(w, c, before, stale), f.noted(w, n, b), f.reported(w, g, max(bound, w.bound), strangers))
	}
	g.Generation -= w.joined[n]
	if c.Op == pool.Beat {
		reply(answer{grant: g, boot: b.boot, sent: b.sent})
	}
}

// strangers reports whether the coordinator does not know all that work, besides one.
func (f *fleet) strangers(w *world, besides int) bool {
	for n := range f.holders {
		h := &w.holders[n]
		if n == besides {
			continue
		}
		if _, known := w.pool.find(f.name(n, h.boot)); !known && max(h.inflight, f.held(w, n)) > 0 {
			return true
		}
	}
	return false
}

// ignored checks that a command that is late or repeated changes nothing.
func (f *fleet) ignored(w *world, c pool.Command, before pool.Record, stale bool) error {
	if after, _ := w.pool.find(c.Holder); stale && after != before {
		return fmt.Errorf("command %d of %s is late or repeated, and changes %+v to %+v", c.Seq, c.Holder, before, after)
	}
	return nil
}

// noted checks that a beat changes what is known when it is the first to arrive of
// all that its process sent since.
func (f *fleet) noted(w *world, n int, b beat) error {
	h := &w.holders[n]
	if b.command.Op != pool.Beat || b.boot != h.boot || b.command.Seq <= h.heard {
		return nil
	}
	h.heard = b.command.Seq
	if after, _ := w.pool.find(b.command.Holder); after.Seq != h.heard {
		return fmt.Errorf("beat %d of %s is news, and beat %d is known", h.heard, b.command.Holder, after.Seq)
	}
	return nil
}

// reported checks what the coordinator says of the fleet: it does not miss what is in
// flight at those it knows, nor does it report an overshoot that there was not. (It cannot
// know that the report of a beat is over that was under way for longer than the share
// lasts.)
func (f *fleet) reported(w *world, g pool.Grant, bound int64, strangers bool) error {
	total := w.inflight()
	switch {
	case g.Bound > bound && w.forgot == 0:
		return fmt.Errorf("the bound is reported as %d, and is %d", g.Bound, bound)
	case g.Occupied < total && !strangers:
		return fmt.Errorf("at most %d are said to have been in flight, and %d are", g.Occupied, total)
	case g.Occupied > g.Bound && (f.late == 0 || f.peaks) && f.gains == 0:
		return fmt.Errorf("an overshoot of %d is reported, which there was not", g.Occupied-g.Bound)
	}
	return nil
}

// settle follows what may be in flight by the fleet's limit, and by those before it
// that the fleet has not drained from yet.
func (f *fleet) settle(w *world) {
	limit := w.pool.memory.Limit
	if w.bound = max(w.bound, limit); w.pool.reserved() <= limit && !w.pool.quarantined(f.now(w)) {
		w.bound = limit
	}
}

// renumber has the generations of a holder begin again when it joins, if they do.
func (f *fleet) renumber(w *world, n int, c pool.Command, known bool) pool.Command {
	if !f.rules.reuses || c.Term == 0 {
		return c
	}
	if !known {
		w.joined[n] = w.pool.memory.Generation
		c.Applied = 0
		return c
	}
	r, _ := w.pool.find(c.Holder)
	c.Applied = min(c.Applied+w.joined[n], r.Generation)
	return c
}
