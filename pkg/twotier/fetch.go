package twotier

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// maxAsks is how often one call asks when its grants come too late.
const maxAsks = 3

// A call is a store call in progress. Requests that miss meanwhile wait for it.
type call struct {
	cfg      *settings     // by which the store is asked
	want     wanted        // that it asks for
	asks     int           // attempts at most
	returned int64         // units that the store had got back when it began, see Key.returnedUnits
	done     chan struct{} // closed when the field below is set; nil when nobody shares it
	err      error
}

// wanted is what a take asks for: the part of its command that is not empty, which is a tenth of it.
type wanted struct {
	least, most int64
	first       bool
}

// command returns the take.
func (w wanted) command() limiter.Command {
	return limiter.Command{Op: limiter.Take, Min: w.least, Want: w.most, First: w.first}
}

// beginCall begins the one store call of the key, for fetch to carry out; mu is held. It
// belongs to the limiter, not to a request: a client that goes away does not fail the
// others that wait.
func (k *Key) beginCall(cfg *settings, take limiter.Command, asks int) *call {
	if k.inflight == nil {
		k.inflight = new(inflight)
	}
	k.inflight.call = k.newCall(cfg, take, asks)
	k.inflight.call.done = make(chan struct{})
	return k.inflight.call
}

// newCall returns a call that begins now; mu is held.
func (k *Key) newCall(cfg *settings, take limiter.Command, asks int) *call {
	return &call{
		cfg: cfg, want: wanted{least: take.Min, most: take.Want, first: take.First}, asks: asks, returned: k.returnedUnits(),
	}
}

// callAsync begins a call and carries it out on another goroutine, or returns false
// when the limiter is closed; mu is held.
func (k *Key) callAsync(cfg *settings, take limiter.Command, asks int) bool {
	c := k.beginCall(cfg, take, asks)
	if k.limiter().start(func() { k.fetch(c) }) {
		return true
	}
	k.inflight.call = nil
	k.trimInflight()
	return false
}

// fetch carries out a call. Requests that wait for it decide again when it brings nothing.
func (k *Key) fetch(c *call) {
	r, ok, err := k.take(k.limiter().ctx, c)
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.endCall(c) // also by a panic
	if ok {
		k.settle(c, r)
	}
	c.err = err
}

// endCall lets the requests go on that wait for the call; mu is held.
func (k *Key) endCall(c *call) {
	if k.inflight != nil && k.inflight.call == c { // not, when another store is being asked by now
		k.inflight.call = nil
		k.trimInflight()
	}
	close(c.done)
}

// take asks for a grant until one can be used: one whose deadline has passed
// when it arrives is dropped, for its windows may be over. Its next attempt
// comes when they surely are: counted from when the command was sent, it could reach
// the store once more just before their end, and again. It reports false when there is
// no reply, or nothing follows from it, and the waiting requests have to decide again:
//
//   - other settings are in force by then, for a process that has said to enforce
//     them does not ask by the old ones;
//   - a grant that came too late was for a time, which does not end for all at once.
func (k *Key) take(ctx context.Context, c *call) (r account.Reply, ok bool, err error) {
	l, key := k.limiter(), k.storeKey(c.cfg)
	if c.cfg.Mode == Leased && c.cfg.breaker.failedLast(key) {
		// An answer may be lost once more, and with it what is granted: of a long window
		// many attempts would use up much.
		c.want.most = c.want.least
	}
	take := c.want.command()
	for range c.asks {
		r, err := l.askFor(ctx, k, key, c.cfg, take)
		if err != nil {
			return account.Reply{}, false, err
		}
		now := l.clock.now()
		l.slow.observe(r.Reply, now)
		switch {
		case r.Granted == 0 || c.asks == 1 || !r.Late(now):
			return r.Reply, true, nil
		case !r.Algorithm.WindowCoupled():
			return account.Reply{}, false, nil
		}
		over := r.Received + account.Nanos(r.ExpiresIn)
		if err := l.clock.sleep(ctx, time.Duration(over-l.clock.now())); err != nil {
			return account.Reply{}, false, err
		}
		if l.settings.Load() != c.cfg {
			return account.Reply{}, false, nil
		}
		take.First = c.cfg.Mode == Leased
	}
	// The store answers slower than windows pass: stop using them up.
	now := l.clock.now()
	pause := limiter.Micros(account.DefaultRefusal / time.Microsecond)
	return account.Reply{Sent: now, Received: now, Unknown: true, Result: limiter.Result{Reason: limiter.Exhausted, RetryAfter: pause}}, true, nil
}

// settle makes the reply to a call effective; mu is held.
func (k *Key) settle(c *call, r account.Reply) {
	l := k.limiter()
	cfg, now, inForce := c.cfg, l.clock.now(), l.settings.Load()
	switch {
	case inForce.breaker != cfg.breaker: // another store serves now
	case inForce.Draining || inForce.Mode != Leased: // no credits may be held
		l.returnAsync(k, cfg.breaker, account.GrantOf(r.Sent, r.Result))
	case k.onLocalShare(now):
		// By the store's clock in the reply, the open window began on the local
		// share. The requests that wait are decided on it, too.
		l.returnAsync(k, cfg.breaker, account.GrantOf(r.Sent, r.Result))
	default:
		k.promote(inForce, now, math.MaxInt64)
		a, lost := inForce.Settle(k.takeAccount(), now, c.want.command(), r)
		// The refusal belongs to the parameters that were asked for.
		k.setAndPay(cfg, a.Returned(k.returnedSince(c)), now)
		l.returnAsync(k, cfg.breaker, lost.Returnable(now))
	}
}

// ask asks the store and counts the calls. A panic of the store is an error that says
// where: others than the request that happens to make the call wait for it.
func (l *Limiter) ask(ctx context.Context, k *Key, cfg *settings, c limiter.Command) (callResult, error) {
	return l.askFor(ctx, k, k.storeKey(cfg), cfg, c)
}

// askFor is ask with the key's name in the store, which costs a hash.
func (l *Limiter) askFor(ctx context.Context, k *Key, key store.Key, cfg *settings, c limiter.Command) (r callResult, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			l.roundTrips.Add(1)
			l.failures.Add(1)
			r, err = callResult{}, fmt.Errorf("a store call panicked: %v\n%s", reason, debug.Stack())
		}
	}()
	if cfg.Pending {
		return callResult{}, cfg.unavailable()
	}
	c.Tenant = k.tenant()
	r, err = cfg.breaker.ask(ctx, key, cfg.paramsOf(k.value()), c, cfg.breaker.timeout(cfg), cfg.Mode != Leased)
	l.roundTrips.Add(r.calls)
	l.failures.Add(r.failures)
	if err == nil && c.Op == limiter.Take {
		r.Result = l.refuseBehindFloor(k, key, cfg, r.Reply)
		l.noteLearning(r.Reply)
	}
	return r, err
}

// refuseBehindFloor returns the result of a reply, which is a refusal when the store grants units
// of a time in which shares were admitted without it: they go back.
func (l *Limiter) refuseBehindFloor(k *Key, key store.Key, cfg *settings, r account.Reply) limiter.Result {
	wait := cfg.breaker.storeTime(key).Behind(r.Now)
	if r.Granted == 0 || wait == 0 {
		return r.Result
	}
	l.returnAsync(k, cfg.breaker, account.GrantOf(r.Sent, r.Result))
	r.Granted, r.Reason, r.RetryAfter = 0, limiter.ClockBehind, wait
	return r.Result
}

// prefetch asks for the next lease asynchronously when the credits of e
// have come down to the low-water mark. It does nothing while a call is in progress,
// and asks once: a grant that comes late is dropped, and an error is for the
// request to find out that needs the store.
func (k *Key) prefetch(e *lease) {
	if !k.mu.TryLock() {
		return // the holder of the lock is about the same, or the next request sees to it
	}
	defer k.mu.Unlock()
	l := k.limiter()
	cfg, now := l.settings.Load(), l.clock.now()
	switch {
	case k.lease.Load() != e || k.inflight != nil && k.inflight.call != nil: // it is being done
	case k.evicted: // nobody would find what it brings
	case cfg.Mode != Leased || cfg.Draining || cfg.LowWater == 0 || k.onLocalShare(now) || l.slow.tooSlow(cfg):
	case k.rare != nil && k.rare.back.Held(now) > 0:
	case cfg.unavailable() != nil:
	default:
		k.callAsync(cfg, cfg.Prefetch(k.peekAccount(), cfg.paramsOf(k.value()), now, l.holders.Load()), 1)
	}
}
