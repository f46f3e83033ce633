package federation

import (
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// dueOpen begins a window with the slice as soon as it surely is one.
func (r *Region) dueOpen(now int64) (order, int64) {
	if r.opening || !r.slices() {
		return order{}, never
	}
	open := int64(r.link.estimate.earliest(now)) / int64(r.config.Params.Window)
	index := max(open, max(r.main.seen.epoch.Index, r.link.opened)+1)
	at := r.link.estimate.surely(r.opens(index))
	if at >= r.link.estimate.perhaps(r.end(index)) {
		return order{}, never // nobody knows the coordinator's clock well enough any more
	}
	return order{op: escrow.Open, vault: r.main, index: index}, at
}

// held returns until when nothing is sent because the answer might begin a window before
// its slice does, which then could not be used.
func (r *Region) held(now int64) int64 {
	e := &r.link.estimate
	if !r.slices() {
		return now
	}
	index := int64(e.latest(now+int64(r.link.trip.most()))) / int64(r.config.Params.Window)
	begun := max(r.main.seen.epoch.Index, r.link.opened) >= index
	at := e.surely(r.opens(index)) + 1
	switch {
	case r.opening:
		return never
	case begun || at >= e.perhaps(r.end(index)):
		return now
	default:
		return max(now, at)
	}
}

// Slice returns the number of the coordinator's window that is open and begun with the slice,
// how many units of it are in hand, and the instant of Config.Clock from which on none may be
// handed on. The number is 0 when there is no such window. For a budget with a key, where
// the region itself hands on nothing, that is the slice of each value; nothing else may then
// share the escrow.
func (r *Region) Slice() (index, units, until int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.main
	until = r.deadline(v)
	if r.config.Outage != Nominal || v.seen.epoch.Index == 0 || until <= r.clock.Now() {
		return 0, 0, 0
	}
	return v.seen.epoch.Index, v.seen.remaining, until
}

// slices reports whether windows can be begun without asking.
func (r *Region) slices() bool {
	return r.config.Outage == Nominal && r.link.slice > 0 && r.link.estimate.known && r.vault() == r.main
}

// open begins a window with the slice. How long it lasts is counted from an answer of the
// escrow's, so that no delay on the way to it lengthens the window.
func (r *Region) open(o order) {
	ctx, timeout := r.ctx, r.timeout()
	a, err := o.vault.ask(ctx, timeout, escrow.Command{Op: escrow.Peek})
	if err == nil {
		r.mu.Lock()
		now := r.clock.Now()
		e, slice := r.link.estimate, r.link.slice
		start, end := r.opens(o.index), r.end(o.index)
		r.mu.Unlock()
		if e.earliest(now) >= start && e.perhaps(end) > now {
			a, err = o.vault.ask(ctx, timeout, escrow.Command{
				Op: escrow.Open, Epoch: ledger.Epoch{Index: o.index}, Slice: slice, At: a.Now,
				ExpiresIn: micros(e.perhaps(end) - now), Age: e.latest(now).Sub(start),
			})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted(o.vault, a, err)
	r.opening = false
	r.settle()
	r.hurry(r.clock.Now())
}
