package twotier

import (
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// Peek returns how a request would be answered, by the store and the held credits,
// and changes nothing. It blocks until the store answered or ctx is done; an error
// means that nothing is known, a *store.UnavailableError that the store could not be
// asked. There is nothing to cancel.
func (l *Limiter) Peek(ctx context.Context, r Request) (Decision, error) {
	k, cost := l.Key(r.Value, r.Tenant), max(r.Cost, 1)
	res, err := l.command(ctx, k, limiter.Command{Op: limiter.Peek, Min: cost, Want: cost})
	if err != nil {
		return Decision{}, err
	}
	d := Decision{
		Allowed: res.Granted >= cost, Source: FromStore, Reason: res.Reason,
		Limit: res.Limit, Remaining: res.Remaining,
		ResetAfter: time.Duration(account.Nanos(res.ResetAfter)), RetryAfter: time.Duration(account.Nanos(res.RetryAfter)),
		Delay: time.Duration(account.Nanos(res.Delay)), Windows: l.internWindows(res.Windows),
	}
	held := k.lease.Load().held(l.clock.now())
	d.Remaining += held
	if held >= cost {
		d.Allowed, d.Source, d.Reason, d.RetryAfter = true, FromLease, limiter.Granted, 0
	}
	return d, nil
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
		return limiter.Result{}, &store.UnavailableError{Store: "the store of " + cfg.Scope.String(), Cause: errDrained}
	}
	r, err := l.ask(ctx, k, cfg, c)
	return r.Result, err
}

var errDrained = errors.New("another one is about to take over")

// reset forgets refusals and debts. Held credits stay.
func (k *Key) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.limiter()
	a := k.takeAccount()
	a.Refusal, a.Debt = account.NoRefusal, 0
	k.setAccount(k.lease.Load().info.settings, a, l.clock.now())
}
