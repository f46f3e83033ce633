package twotier

import (
	"context"
	"math"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// maxAsks is how often one call asks when its grants come too late.
const maxAsks = 3

// A call is a store call under way. Requests that miss meanwhile wait for it.
type call struct {
	cfg  *settings // by which the store is asked
	take limiter.Command
	asks int
	done chan struct{} // closed when the field below is set
	err  error
}

// call begins the one store call of the key, for fetch to carry out; mu is held. It
// belongs to the limiter, not to a request: a client that goes away does not fail the
// others that wait.
func (k *Key) call(cfg *settings, take limiter.Command, asks int) *call {
	if k.busy == nil {
		k.busy = new(busy)
	}
	k.busy.call = &call{cfg: cfg, take: take, asks: asks, done: make(chan struct{})}
	return k.busy.call
}

// callBeside begins a call and carries it out beside its caller, or returns false
// when the limiter is closed; mu is held.
func (k *Key) callBeside(cfg *settings, take limiter.Command, asks int) bool {
	c := k.call(cfg, take, asks)
	if k.limiter().start(func() { k.fetch(c) }) {
		return true
	}
	k.busy.call = nil
	k.rest()
	return false
}

// fetch carries out a call.
func (k *Key) fetch(c *call) {
	l := k.limiter()
	r, err := k.take(l.ctx, c.cfg, c.take, c.asks)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.settle(c.cfg, c.take, r)
	}
	c.err = err
	if k.busy != nil && k.busy.call == c { // not, when another store is being asked by now
		k.busy.call = nil
		k.rest()
	}
	close(c.done)
}

// take asks for a grant until one can be used: one whose deadline has passed
// when it arrives is dropped, for its windows may be over. Its next attempt
// comes when they surely are: counted from when the command was sent, it could reach
// the store once more just before their end, and again. It does not come when other
// settings are in force by then: who has said to enforce them does not ask by the old
// ones.
func (k *Key) take(ctx context.Context, cfg *settings, take limiter.Command, asks int) (Reply, error) {
	l := k.limiter()
	for range asks {
		r, err := l.ask(ctx, k, cfg, take)
		if err != nil || r.Granted == 0 || asks == 1 || !r.Late(l.clock.now()) {
			return r.Reply, err
		}
		over := r.Received + nanos(r.ExpiresIn)
		if err := l.clock.sleep(ctx, time.Duration(over-l.clock.now())); err != nil {
			return r.Reply, err
		}
		if l.settings.Load() != cfg {
			break
		}
		take.First = cfg.Mode == Leased
	}
	// The store answers slower than windows pass: stop using them up. Other settings
	// do not remember it.
	now := l.clock.now()
	pause := limiter.Micros(relent / time.Microsecond)
	return Reply{Sent: now, Received: now, Result: limiter.Result{Reason: limiter.Exhausted, RetryAfter: pause}}, nil
}

// settle makes a reply effective; mu is held.
func (k *Key) settle(cfg *settings, take limiter.Command, r Reply) {
	l := k.limiter()
	now, inForce := l.clock.now(), l.settings.Load()
	switch {
	case inForce.gate != cfg.gate: // another store serves now
	case inForce.Draining || inForce.Mode != Leased: // no credits may be held
		l.giveBack(k, cfg.gate, GrantOf(r.Sent, r.Result))
	case k.isAlone(now):
		// The reply told the store's clock, and by that the open window began on the
		// local share. The requests that wait are decided on it, too.
		l.giveBack(k, cfg.gate, GrantOf(r.Sent, r.Result))
	default:
		k.turn(inForce, now, math.MaxInt64)
		a, lost := inForce.Settle(k.account(), now, take, r)
		// The refusal is of the parameters that were asked for.
		k.keep(cfg, a, now)
		l.giveBack(k, cfg.gate, lost.Returnable(now))
	}
}

// ask asks the store and counts the calls.
func (l *Limiter) ask(ctx context.Context, k *Key, cfg *settings, c limiter.Command) (reply, error) {
	c.Tenant = k.tenant()
	r, err := cfg.gate.ask(ctx, k.storeKey(cfg), cfg.ParamsOf(k.value()), c, cfg.Timeout)
	l.roundTrips.Add(r.calls)
	l.failures.Add(r.failures)
	return r, err
}
