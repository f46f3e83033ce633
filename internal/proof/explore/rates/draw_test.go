package rates_test

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/joint"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A counter is where a member hands units on: it has a till for each rate, and time may pass before the
// call of that number, from 1 on.
type counter struct {
	of    *system
	world *world
	n     int // of the member
	slip  int
	calls int
}

// A till hands on units of one rate, from its escrow.
type till struct {
	*counter
	i int
}

// Apply implements joint.Budget as a region does it that has units or none.
func (b till) Apply(_ context.Context, _ store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	b.step()
	m := &b.world.members[b.n]
	e, now := &m.escrows[b.i], b.of.local(b.world.now, b.n)
	res := limiter.Result{Reason: limiter.Exhausted, Limit: p.Rates[0].Limit, Now: b.of.instant(b.world.now), RetryAfter: b.of.tick()}
	var r escrow.Result
	switch c.Op {
	case limiter.Return:
		for range b.of.rules.returns(b.i) {
			*e, r = e.Step(now, escrow.Command{Op: escrow.Return, Epoch: ledger.Epoch{Index: b.of.rules.returned(c.Windows.Open[0].Index, e)}, Want: c.Want})
		}
		if res.Granted = r.Granted; r.Granted > 0 {
			res.Reason = limiter.Granted
		}
		return res, nil
	case limiter.Peek:
		_, r = e.Step(now, escrow.Command{Op: escrow.Peek})
	default:
		*e, r = e.Step(now, escrow.Command{Op: escrow.Take, Min: c.Min, Want: c.Want})
		res.Granted = r.Granted
	}
	if r.Epoch.Index > 0 {
		res.Windows = limiter.Windows{N: 1, Open: [limiter.MaxRates]limiter.OpenWindow{{Rate: p.Rates[0], Index: r.Epoch.Index}}}
	}
	if res.Granted > 0 {
		res.Reason, res.ExpiresIn = limiter.Granted, r.ExpiresIn
	}
	return res, nil
}

// step counts a call, before which time may pass.
func (k *counter) step() {
	if k.calls++; k.calls == k.slip {
		k.world.slips++
		k.of.pass(k.world)
	}
}

// apply has a command be decided by all rates.
func (k *counter) apply(c limiter.Command) limiter.Result {
	d, p := joint.Draw{Patience: time.Hour}, limiter.Params{}
	for i := range k.of.rules.charged {
		d.Budgets = append(d.Budgets, till{k, i})
		p.Rates = append(p.Rates, k.of.rate(k.world.edits, i))
	}
	c.Windows.N = min(c.Windows.N, len(p.Rates))
	res, err := d.Apply(context.Background(), store.Key{}, p, c)
	if err != nil {
		panic(err)
	}
	return res
}

// draw has a process of a member draw.
func (k *counter) draw(process int) {
	sent := k.world.now
	res := k.apply(limiter.Command{Op: limiter.Take, Min: 1, Want: k.of.want})
	if res.Granted == 0 {
		return
	}
	k.of.rules.granted(k.of, &res)
	m := &k.world.members[k.n]
	m.hands[process] = holding{res.Granted, res.Windows, k.of.rules.from(sent, k.world.now) + int64(res.ExpiresIn)/int64(k.of.tick())}
	for i, o := range res.Windows.Slice() {
		m.used[i] = use{o.Index, m.used[i].of(o.Index) + res.Granted}
	}
}

// giveBack has it give back all that it has left.
func (k *counter) giveBack(process int) {
	m := &k.world.members[k.n]
	h := m.hands[process]
	m.hands[process] = holding{}
	for i, o := range h.windows.Slice() {
		if m.used[i].index == o.Index {
			m.used[i].units -= h.units
		}
	}
	k.apply(limiter.Command{Op: limiter.Return, Want: h.units, Windows: h.windows})
}
