package twotier

import (
	"context"
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
)

// returnsAtOnce bounds the returns that are under way at once when many keys give
// back what they hold.
const returnsAtOnce = 16

// Cancel takes the decision back because the request was not let through after
// all: the cost becomes available again, in what it was charged to and nowhere
// else. It does not block. It has no effect on a refusal, the second time, and on
// what was admitted without the store. Cancel of a copy counts as another time:
// cancel one copy only.
func (d *Decision) Cancel() {
	e, cost := d.from, d.cost
	d.from, d.cost = nil, 0
	if e != nil {
		e.refund(d.Source, cost)
	}
}

// refund puts cost of a decision back that was charged to the lease. What came
// from credits goes to the credits that are charged to the same, whichever lease
// has them by now; when the key has none any more, it is lost.
func (e *lease) refund(s Source, cost int64) {
	if s == FromStore {
		e.terms.limiter.giveBack(e.key, e.terms.settings.gate, e.holding(cost))
		return
	}
	k, charge := e.key, e.terms.charge()
	k.mu.Lock()
	defer k.mu.Unlock()
	var back Holding
	if k.extra != nil {
		back = k.extra.back
	}
	// The front is not drained for this: what is put back is there at once.
	now := k.lease.Load()
	h, ok := Hand{Front: now.holding(0), Back: back}.Refund(charge, cost)
	if !ok {
		return
	}
	now.credits.Add(h.Front.Credits)
	k.setBack(h.Back)
}

// recall takes the credits of all keys away and gives them back to the store
// without waiting for it.
func (l *Limiter) recall() {
	gate, all := l.settings.Load().gate, l.collect()
	if len(all) > 0 {
		l.start(func() { l.sendAllBack(l.ctx, gate, all) })
	}
}

// giveAllBack returns the unspent credits of all keys.
func (l *Limiter) giveAllBack(ctx context.Context) {
	l.sendAllBack(ctx, l.settings.Load().gate, l.collect())
}

// collect takes the credits of all keys away.
func (l *Limiter) collect() []handful {
	now := l.clock.now()
	var all []handful
	l.eachKey(func(k *Key) {
		for _, h := range k.surrender(now) {
			all = append(all, handful{k, h})
		}
	})
	return all
}

// A handful is credits that a key no longer holds.
type handful struct {
	key *Key
	Holding
}

// sendAllBack returns credits to the store, several keys' at a time.
func (l *Limiter) sendAllBack(ctx context.Context, gate *Gate, all []handful) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, returnsAtOnce)
	for _, h := range all {
		if ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		wait.Go(func() {
			l.sendBack(ctx, h.key, gate, h.Holding)
			<-slots
		})
	}
	wait.Wait()
}

// giveBack returns credits to the store without waiting for it.
func (l *Limiter) giveBack(k *Key, gate *Gate, h Holding) {
	if h.Credits > 0 {
		l.start(func() { l.sendBack(l.ctx, k, gate, h) })
	}
}

// sendBack returns credits to the store behind the gate, if that is still the one.
// Whatever the outcome it is not tried again: a return that was applied although
// its answer got lost would be credited twice.
func (l *Limiter) sendBack(ctx context.Context, k *Key, gate *Gate, h Holding) {
	cfg := l.settings.Load()
	if cfg.gate != gate {
		return
	}
	_, _ = l.ask(ctx, k, cfg, limiter.Command{Op: limiter.Return, Want: h.Credits, Windows: h.Windows, At: h.At})
}
