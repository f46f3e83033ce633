package twotier

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// maxAsks is how often one call asks when its grants come too late.
const maxAsks = 3

// A call is a store call under way. Requests that miss meanwhile wait for it.
type call struct {
	gate *Gate         // of the store that is asked
	done chan struct{} // closed when the field below is set
	err  error
}

// call starts the one store call of the key, or returns false when the limiter is
// closed; mu is held. It belongs to the limiter, not to a request: a client that
// goes away does not fail the others that wait.
func (k *Key) call(cfg *settings, take limiter.Command, asks int) bool {
	if k.busy == nil {
		k.busy = new(busy)
	}
	c := &call{gate: cfg.gate, done: make(chan struct{})}
	if !k.limiter().start(func() { k.fetch(c, cfg, take, asks) }) {
		k.rest()
		return false
	}
	k.busy.call = c
	return true
}

// fetch carries out a call.
func (k *Key) fetch(c *call, cfg *settings, take limiter.Command, asks int) {
	l := k.limiter()
	r, err := k.take(l.ctx, cfg, take, asks)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.settle(cfg, take, r)
	}
	c.err = err
	k.busy.call = nil
	k.rest()
	close(c.done)
}

// take asks for a grant until one can be used: one whose deadline has passed
// when it arrives is dropped, for its windows may be over. Its next attempt
// comes when they are.
func (k *Key) take(ctx context.Context, cfg *settings, take limiter.Command, asks int) (reply, error) {
	l, ends := k.limiter(), k.lease.Load().terms.ends
	for range asks {
		take.First = cfg.Mode == Leased && l.clock.now() >= ends
		r, err := l.ask(ctx, k, cfg, take)
		if err != nil || r.Granted == 0 || !r.late(l.clock.now()) {
			return r, err
		}
		ends = r.sent + nanos(r.ExpiresIn)
		if err := l.clock.sleep(ctx, time.Duration(ends-l.clock.now())); err != nil {
			return r, err
		}
	}
	// The store answers slower than windows pass: stop using them up.
	now := l.clock.now()
	pause := limiter.Micros(relent / time.Microsecond)
	return reply{sent: now, received: now, Result: limiter.Result{Reason: limiter.Exhausted, RetryAfter: pause}}, nil
}

// late reports whether what was granted may no longer be spent. What has no life
// of its own is spent at once.
func (r *reply) late(now int64) bool {
	if !r.Algorithm.WindowCoupled() && r.ExpiresIn == 0 {
		return false
	}
	return now >= DeadlineOf(r.sent, r.ExpiresIn)
}

// settle makes a reply effective; mu is held.
func (k *Key) settle(cfg *settings, take limiter.Command, r reply) {
	l := k.limiter()
	now, inForce := l.clock.now(), l.settings.Load()
	grant := GrantOf(r.sent, r.Result)
	switch {
	case inForce.gate != cfg.gate:
		return // another store serves now
	case inForce.Draining || inForce.Mode != Leased:
		l.giveBack(k, cfg.gate, grant) // no credits may be held
		return
	case k.isAlone(now):
		// The reply told the store's clock, and by that the open window began on the
		// local share. The requests that wait are decided on it, too.
		l.giveBack(k, cfg.gate, grant)
		return
	}
	k.carryOver(inForce, now)
	known := k.lease.Load()
	h := k.hand()
	k.learn(inForce, known, h, &r)
	if now < grant.Deadline {
		k.pay(&grant)
	}
	h, lost := h.Receive(now, grant, inForce.Expiry == CarryOver)
	l.giveBack(k, cfg.gate, lost.Returnable(now))
	front := h.Front
	if front.Held(now) == 0 {
		front = Holding{}
	}
	k.hold(h, cfg.termsOf(take, &r, front, known.terms), r.Remaining)
}

// ask calls the store once and counts the call.
func (l *Limiter) ask(ctx context.Context, k *Key, cfg *settings, c limiter.Command) (reply, error) {
	c.Tenant = k.tenant()
	r, err := cfg.gate.ask(ctx, k.storeKey(cfg), cfg.paramsOf(k.value()), c, cfg.Timeout)
	if r.asked {
		l.roundTrips.Add(1)
		if err != nil {
			l.failures.Add(1)
		}
	}
	return r, err
}
