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
	"github.com/weir-dev/weir/pkg/twotier/account"
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

// exchange asks the escrow what to send the coordinator, sends that, and brings the
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
		err = r.heard(o.vault, g, sent, received)
	}
	var filled answer
	var fault error
	if err == nil {
		filled, fault = o.vault.ask(ctx, r.timeout(), escrow.Command{
			Op: escrow.Fill, Holder: a.Holder, Grant: g, At: a.Now,
			ExpiresIn: micros(account.DeadlineOf(sent, g.ExpiresIn) - sent),
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
		r.link.promised = a.Slice
	}
	c := ledger.Command{
		Op: ledger.Lease, Member: r.config.Member, Holder: a.Holder, Seq: a.Seq,
		Epoch: a.From, Granted: a.Told, Min: o.min, Want: o.want,
		Demand: min(int64(math.Round(outlook.whole)), limiter.MaxLimit),
		Slice:  a.Slice,
	}
	all := r.split.tenants(r.demand.index)
	all.say(&c, r.demand.level, r.config.self().Nominal, r.config.Params.Limit, outlook.life)
	if o.op == escrow.Release {
		c.Op = ledger.Release
	}
	if o.vault != r.main { // the slice is for the other escrow to use and to give up
		c.Slice = r.link.promised
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

// noted takes note of what an escrow answered, unless that is about windows of a length
// that is not in force any more: their numbers are not comparable. While the escrow is
// away the region leases into its own memory, as a holder of its own.
func (r *Region) noted(v *vault, a answer, err error) {
	now := r.clock.Now()
	switch {
	case v.id != r.main.id:
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

// done ends an order: those that wait look whether it brought what they need.
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
