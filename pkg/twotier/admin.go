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

// Stats are figures of a limiter since it was made.
type Stats struct {
	RoundTrips int64 // store calls, returns included
	Errors     int64 // store calls that failed
	Promised   int64 // requests refused because of Breaker.Promise that the local share had room for
	ActiveKeys int   // pairs of value and tenant that have credits of their own
	// Full is the bound because of which other pairs, asked for in the last minute, have none.
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

// A learning is a refusal by which the store said that it cannot know what it granted
// before. It is one for all keys of the limit: they share the store's memory.
type learning struct {
	reason limiter.Reason
	until  int64 // local instant
}

// noteLearning notes the answer to a take.
func (l *Limiter) noteLearning(r account.Reply) {
	switch r.Reason {
	case limiter.Amnesia, limiter.ClockBehind:
		l.learning.Store(&learning{reason: r.Reason, until: r.Received + account.Nanos(r.RetryAfter)})
	case limiter.Granted:
		if l.learning.Load() != nil { // mostly nothing is written
			l.learning.Store(nil)
		}
	case limiter.Exhausted, limiter.TooLarge, limiter.StaleGeneration, limiter.Forfeited:
		// They do not show what the store remembers.
	}
}

// isLearning returns for how long the store goes on so, and why.
func (l *Limiter) isLearning() (limiter.Reason, time.Duration) {
	v := l.learning.Load()
	if v == nil {
		return limiter.Granted, 0
	}
	left := time.Duration(v.until - l.clock.now())
	if left <= 0 {
		return limiter.Granted, 0
	}
	return v.reason, left
}
