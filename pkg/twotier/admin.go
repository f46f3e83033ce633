package twotier

import (
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// Peek returns how a request would fare. It reads the store, and neither takes units nor
// makes a counter, here or there. It blocks until the store answered, the time-out is over or
// ctx is done: that the store could not be read is Forecast.Unread. An error is a defect.
func (l *Limiter) Peek(ctx context.Context, r Request) (Forecast, error) {
	cfg, cost := l.settings.Load(), max(r.Cost, 1)
	k, shares := l.look(r)
	o, unread := k.foresee(cfg, cost)
	if unread == nil {
		reply, err := l.ask(ctx, k, cfg, o.Peek())
		if err == nil {
			k, shares = l.look(r) // it may have come meanwhile, with a lease
			f := k.foreseeBy(cfg, o, cost, reply.Reply)
			f.Shared = shares
			return f, nil
		}
		if _, lost := unavailableBy(err); !lost {
			return Forecast{}, err
		}
		unread = err
	}
	return Forecast{Decision: k.foreseeWithout(cfg, o, cost), Credits: o.Held, Unread: unread, Shared: shares}, nil
}

// look returns the key of a request without making one, and whether values share it.
func (l *Limiter) look(r Request) (k *Key, shares bool) {
	if r.Value == "" && r.Tenant == "" {
		return l.single, false
	}
	return l.keys.look(r.Value, r.Tenant)
}

// foresee returns what the key says of a request, and why the store must not be read for it,
// nil when it may.
func (k *Key) foresee(cfg *settings, cost int64) (o account.Outlook, unread error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, a := k.limiter().clock.now(), k.peekAccount()
	if k.lease.Load().info.settings != cfg {
		a.Refusal = account.NoRefusal
	}
	o = cfg.Foresee(a, cfg.paramsOf(k.value()), now, cost)
	switch {
	case cfg.Draining:
		return o, cfg.storeUnavailable(errDrained)
	case o.Outcome == account.Undecided && k.onLocalShare(now):
		return o, cfg.storeUnavailable(errLocal)
	default:
		return o, nil
	}
}

// foreseeBy returns how a request would be decided by what the store answered; o was before.
func (k *Key) foreseeBy(cfg *settings, o account.Outlook, cost int64, r account.Reply) Forecast {
	l := k.limiter()
	after, _ := k.foresee(cfg, cost)
	res := after.With(o, r.Result)
	f := Forecast{Credits: after.Held, Age: time.Duration(l.clock.now() - r.Sent)}
	if after.Outcome == account.Undecided {
		f.Source = FromStore
		if wait := cfg.breaker.storeTime(k.storeKey(cfg)).Behind(r.Now); wait > 0 && res.Granted > 0 {
			res.Granted, res.Delay, res.Reason, res.RetryAfter = 0, 0, limiter.ClockBehind, wait
		}
	}
	f.Allowed, f.Reason, f.Limit, f.Remaining = res.Granted > 0, res.Reason, res.Limit, res.Remaining
	f.ResetAfter, f.RetryAfter = time.Duration(account.Nanos(res.ResetAfter)), time.Duration(account.Nanos(res.RetryAfter))
	f.Delay, f.Windows = time.Duration(account.Nanos(res.Delay)), l.windows.latest.Load()
	if res.Windows.N > 0 {
		f.Windows = l.internWindows(res.Windows)
	}
	return f
}

// foreseeWithout returns how a request would be decided without the store.
func (k *Key) foreseeWithout(cfg *settings, o account.Outlook, cost int64) Decision {
	k.mu.Lock()
	defer k.mu.Unlock()
	l, now, e := k.limiter(), k.limiter().clock.now(), k.lease.Load()
	switch {
	case o.Outcome != account.Undecided:
		return Decision{
			Allowed: o.Outcome == account.Admitted, Reason: o.Reason, Limit: e.info.limit, Remaining: o.Held,
			ResetAfter: time.Duration(max(0, e.info.resets-now)), RetryAfter: time.Duration(o.Wait), Windows: e.info.windows,
		}
	case cfg.Draining:
		return l.refusedByDrain(cfg)
	case k.onLocalShare(now) || cfg.OnUnavailable == LocalShare:
		return k.foreseeLocally(cfg, cost, now)
	case cfg.OnUnavailable == Allow:
		return l.allowed(cfg, now)
	default:
		return l.withoutStore(cfg, now)
	}
}

// Reset makes the store forget what the counter of the request was granted, for
// every tenant; its cost does not matter. Units that holders have stay good
// on top of the limit, and other processes go on refusing what they know to be
// refused until its time is up. It blocks until the store answered or ctx is done;
// after an error it may or may not have been done.
func (l *Limiter) Reset(ctx context.Context, r Request) error {
	k := l.Key(r.Value, r.Tenant)
	if _, err := l.command(ctx, k, limiter.Command{Op: limiter.Reset}); err != nil {
		return err
	}
	k.reset()
	return nil
}

// command asks the store once, whatever the limiter knows, unless the store is
// being drained.
func (l *Limiter) command(ctx context.Context, k *Key, c limiter.Command) (limiter.Result, error) {
	cfg := l.settings.Load()
	if cfg.Draining {
		return limiter.Result{}, cfg.storeUnavailable(errDrained)
	}
	r, err := l.ask(ctx, k, cfg, c)
	return r.Result, err
}

func (s *settings) storeUnavailable(cause error) error {
	return &store.UnavailableError{Store: "the store of " + s.Scope.String(), Cause: cause}
}

var (
	errDrained = errors.New("another one is about to take over")
	errLocal   = errors.New("the open window is admitted on the local share")
)

// reset forgets refusals and debts. Held credits stay.
func (k *Key) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.limiter()
	a := k.takeAccount()
	a.Refusal, a.Debt = account.NoRefusal, 0
	k.setAccount(k.lease.Load().info.settings, a, l.clock.now())
}

// Stats are figures of a limiter since it was made.
type Stats struct {
	RoundTrips int64 // store calls, returns included
	Errors     int64 // store calls that failed
	Promised   int64 // requests refused because of Breaker.Promise that the local share had room for
	ActiveKeys int   // pairs of value and tenant that have credits of their own
	// Full is the bound that leaves other pairs, asked for in the last minute, without any.
	// There are SharedKeys counters for these.
	Full       KeysBound
	SharedKeys int
	// Slow says that the store takes longer than Params.Lifetime, so that it is asked
	// for each request that is admitted although the mode is Leased.
	Slow bool
	// CutOffSince is when the store became unavailable, zero while it is not, and
	// CutOff why. They are found out by requests: without any, they stay.
	CutOffSince time.Time
	CutOff      error
	// Learning is why the store refused a take although it may have units left: Amnesia or
	// ClockBehind, since it cannot know what it granted before. It goes on for LearningFor,
	// which is 0 when the store does not refuse so, or that is over. It is found out by
	// requests, too.
	Learning    limiter.Reason
	LearningFor time.Duration
}

// Stats returns the present figures.
func (l *Limiter) Stats() Stats {
	s := Stats{RoundTrips: l.roundTrips.Load(), Errors: l.failures.Load(), Promised: l.promised.Load(), ActiveKeys: l.keys.size()}
	cfg := l.settings.Load()
	s.Full, s.SharedKeys = l.keys.fullBy(l.clock.now()), cfg.SharedKeys
	s.Slow = l.slow.tooSlow(cfg)
	if s.CutOffSince, s.CutOff = cfg.breaker.state(cfg.Scope); cfg.Pending {
		s.CutOffSince, s.CutOff = cfg.pendingSince, cfg.unavailable()
	}
	s.Learning, s.LearningFor = l.isLearning()
	return s
}

// Credits returns how many units are held, of all keys, that may still be spent. It
// looks at every key, so it is for the occasional look only.
func (l *Limiter) Credits() int64 {
	now := l.clock.now()
	var sum int64
	l.eachKey(func(k *Key) {
		k.mu.Lock()
		defer k.mu.Unlock()
		a := k.peekAccount()
		sum += a.Front.Held(now) + a.Back.Held(now)
	})
	return sum
}
