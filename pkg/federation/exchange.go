package federation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// start carries an order out beside its caller: there is one at a time.
func (r *Region) start(o order, now int64) {
	switch o.op {
	case escrow.Open:
		r.opening, r.link.opened = true, o.index
	case escrow.Release:
		r.busy, r.link.checked = true, now
	default:
		r.busy = true
	}
	r.work.Go(func() {
		switch o.op {
		case escrow.Peek:
			r.visit(o)
		case escrow.Open:
			r.open(o)
		default:
			r.exchange(r.ctx, o)
		}
	})
}

// visit finds out whether the escrow is there.
func (r *Region) visit(o order) {
	a, err := o.vault.ask(r.ctx, r.timeout(), escrow.Command{Op: escrow.Peek})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted(o.vault, a, err)
	r.done()
}

// open begins a window with the slice. How long it lasts is told as of an answer of the
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

// exchange asks the escrow what to tell the coordinator, sends that, and brings the
// answer back.
func (r *Region) exchange(ctx context.Context, o order) {
	a, err := o.vault.ask(ctx, r.timeout(), escrow.Command{Op: o.op, Keep: o.keep})
	r.mu.Lock()
	r.noted(o.vault, a, err)
	if err != nil {
		r.done()
		r.mu.Unlock()
		return
	}
	c := r.command(o, a)
	sent := r.clock.Now()
	r.link.sent = sent
	r.mu.Unlock()

	g, err := r.apply(ctx, c)
	received := r.clock.Now()
	if err == nil {
		err = r.heard(g, sent, received)
	}
	var filled answer
	var fault error
	if err == nil {
		filled, fault = o.vault.ask(ctx, r.timeout(), escrow.Command{
			Op: escrow.Fill, Holder: a.Holder, Grant: g, At: a.Now,
			ExpiresIn: micros(twotier.DeadlineOf(sent, g.ExpiresIn) - sent),
		})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	switch {
	case err != nil:
		r.failed(now, err)
	default:
		r.noted(o.vault, filled, fault)
		r.granted(o, c, g, now)
	}
	r.done()
}

// command returns what to send.
func (r *Region) command(o order, a answer) ledger.Command {
	outlook := r.outlook(r.clock.Now())
	if o.vault == r.main {
		r.link.told = a.Slice
	}
	c := ledger.Command{
		Op: ledger.Lease, Member: r.config.Member, Holder: a.Holder, Seq: a.Seq,
		Epoch: a.From, Granted: a.Told, Min: o.min, Want: o.want,
		Demand: min(int64(math.Round(outlook.whole)), limiter.MaxLimit),
		Weight: r.split.weight(r.demand.index), Slice: a.Slice,
	}
	if o.op == escrow.Release {
		c.Op = ledger.Release
	}
	if o.vault != r.main { // the slice is for the other escrow to use and to give up
		c.Slice = r.link.told
	}
	return c
}

// apply sends a command to the coordinator.
func (r *Region) apply(ctx context.Context, c ledger.Command) (ledger.Grant, error) {
	r.mu.Lock()
	id, p, timeout := r.config.ID, r.config.Params, r.config.Timeout
	r.counts.commands++
	r.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	g, err := r.coordinator.Apply(call, id, p, c)
	if err != nil && errors.Is(call.Err(), context.DeadlineExceeded) && !away(err) {
		err = &store.UnavailableError{Store: "the coordinator of budget " + id, Cause: context.DeadlineExceeded}
	}
	if err != nil {
		return g, fmt.Errorf("federation: %w", err)
	}
	return g, nil
}

// heard takes note of an answer of the coordinator, unless it is of one that another
// followed.
func (r *Region) heard(g ledger.Grant, sent, received int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link.older(&g) {
		return &store.UnavailableError{Store: "the coordinator of budget " + r.config.ID, Cause: errOlder}
	}
	r.link.hear(g, sent, received)
	return nil
}

// granted goes on with an answer that was brought to the escrow.
func (r *Region) granted(o order, c ledger.Command, g ledger.Grant, now int64) {
	if o.vault == r.main {
		r.link.slice, r.link.told = g.Slice, max(r.link.told, g.Slice)
	}
	if o.vault == r.spare && r.access.cause == nil {
		r.spare = nil // it is empty
	}
	brought := g.Granted
	if g.Epoch == c.Epoch {
		brought -= c.Granted
	}
	r.counts.granted += max(0, brought)
	r.demand.claim.tell(g.Epoch.Index, max(c.Demand, g.Granted), c.Op == ledger.Release && g.Reason == ledger.Granted)
	if c.Op != ledger.Lease {
		return
	}
	r.learn(&c, &g, brought)
	r.link.dry = dry{until: past}
	if g.Reason != ledger.Granted {
		r.link.dry = r.pause(&c, &g, now)
	}
}

// learn learns the size of leases from an answer.
func (r *Region) learn(c *ledger.Command, g *ledger.Grant, brought int64) {
	res := limiter.Result{Granted: max(0, brought), Remaining: g.Remaining, Limit: g.Limit}
	if g.Reason == ledger.Exhausted || g.Reason == ledger.Kept {
		res.Reason = limiter.Exhausted
	}
	r.demand.sizer = r.rule.Heard(r.demand.sizer, c.Want, res, float64(g.ExpiresIn)/float64(r.config.Params.Window))
}

// pause returns for how long nothing is asked for after an answer that brought nothing.
// Others give back what they do not need, most of it late in the window.
func (r *Region) pause(c *ledger.Command, g *ledger.Grant, now int64) dry {
	const part = 4 // of the rest of the window
	retry := nanos(g.RetryAfter)
	if retry <= 0 {
		retry = int64(time.Second)
	}
	wait := max(nanos(g.ExpiresIn)/part, int64(r.link.trip.mean), int64(time.Millisecond))
	if g.ExpiresIn == 0 {
		wait = retry
	}
	d := dry{least: c.Min, until: now + min(wait, retry), tell: now + retry}
	if g.Reason == ledger.Exhausted || g.Reason == ledger.Kept {
		d.tell = d.until
	}
	return d
}

// failed goes on without the coordinator.
func (r *Region) failed(now int64, err error) {
	if r.link.cause == nil {
		r.counts.outages++
	}
	r.link.fail(now, err, r.config.Probe)
}

// noted takes note of what an escrow answered. While it is away the region leases into
// its own memory, as a holder of its own.
func (r *Region) noted(v *vault, a answer, err error) {
	now := r.clock.Now()
	switch {
	case err == nil:
		v.seen.see(a)
		r.demand.roll(r.rule, v.seen.epoch.Index)
		if v == r.main {
			r.access = outage{}
		}
	case r.ctx.Err() == nil && v == r.main && v.shared:
		r.access.fail(now, err, longestAway)
		if r.spare == nil {
			r.spare = newVault(nil, &r.config)
		}
	}
}

// longestAway is the longest time between two attempts to reach an escrow.
const longestAway = time.Second

// done ends an order: those who wait look whether it brought what they need.
func (r *Region) done() {
	r.busy = false
	r.settle()
	r.hurry(r.clock.Now())
}

func (r *Region) timeout() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Timeout
}
