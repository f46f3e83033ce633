package enforce

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A Watched engine reports on itself; see twotier.Limiter.
type Watched interface {
	Stats() twotier.Stats
	Credits() int64
}

// A Decider decides requests; see twotier.Limiter.
type Decider interface {
	Acquire(ctx context.Context, r twotier.Request) (twotier.Decision, error)
	Peek(ctx context.Context, r twotier.Request) (twotier.Forecast, error)
}

// A Limiter is what a limit needs of its engine; see twotier.Limiter.
type Limiter interface {
	Decider
	Watched
	Reconfigure(cfg twotier.Config)
	Swap(cfg twotier.Config, s twotier.Store)
	SetHolders(n int64)
	Close(ctx context.Context)
}

// open gives the limit its store: that of its policy or, when it draws from a budget,
// what hands that on, which stays as long as the budget does. An engine never takes what
// one of them granted for the other's: so an edit of the scope exchanges the store.
func (l *limit) open(stores Stores, running *limit) (err error) {
	switch {
	case l.Limit.Budget == nil:
		l.store, err = stores.Open(l.Policy.Store)
	case running != nil && running.budget() == l.budget():
		l.store = running.store
	default:
		l.store = stores.Budget()
	}
	return err
}

// budget returns the id of the budget that the limit draws from, empty for none.
func (l *limit) budget() string {
	if l.Limit.Budget == nil {
		return ""
	}
	return l.Limit.Budget.ID
}

// work gives the limit its engine: that of the limit that ran in its place, nil when
// none did, or a new one.
func (l *limit) work(cfg twotier.Config, running *limit, newLimiter func(twotier.Config, twotier.Store) (Limiter, error)) (err error) {
	switch {
	case running == nil:
		l.engine, err = newLimiter(cfg, l.store)
	case running.store != l.store:
		l.engine = running.engine
		l.engine.Swap(cfg, l.store)
	default:
		l.engine = running.engine
		l.engine.Reconfigure(cfg)
	}
	return err
}

// engineConfig returns what the engine of the limit has to enforce, among that many
// processes.
func (l *limit) engineConfig(holders int64) twotier.Config {
	c := l.Limit.ConsistencyOf(l.Policy)
	return twotier.Config{
		Scope:           l.scope,
		Params:          l.Limit.Params(l.Policy),
		Overrides:       l.overrides,
		Mode:            modes[c.Mode],
		Size:            twotier.Size{Type: sizes[c.Size], Batch: c.Batch, Min: c.Min, Max: c.Max},
		Expiry:          expiries[c.Expiry],
		LowWater:        c.LowWater,
		ReturnIdleAfter: time.Duration(c.ReturnIdleAfter) * time.Microsecond,
		Draining:        l.Policy.Draining,
		Pending:         l.Limit.Pending,
		MaxKeys:         l.maxPairs(),
		SharedKeys:      l.sharedKeys(),
		OnUnavailable:   l.onUnavailable(),
		Holders:         holders,
	}
}

// onUnavailable returns what the limit does while its store is away. A pod does not
// know what part of a budget that clusters share is left for it alone, so there is no
// share to enforce.
func (l *limit) onUnavailable() twotier.Action {
	action := actions[l.Policy.OnStoreUnavailable]
	if l.Limit.Budget != nil && action == twotier.LocalShare {
		return twotier.Deny
	}
	return action
}

var modes = map[policy.ConsistencyMode]twotier.Mode{
	policy.Leased:     twotier.Leased,
	policy.CachedDeny: twotier.CachedDeny,
	policy.Strict:     twotier.Strict,
}

var sizes = map[policy.SizeType]twotier.SizeType{
	policy.Fixed:      twotier.Fixed,
	policy.Adaptive:   twotier.Adaptive,
	policy.Predictive: twotier.Predictive,
}

var expiries = map[policy.Expiry]twotier.Expiry{
	policy.Coupled:   twotier.Coupled,
	policy.CarryOver: twotier.CarryOver,
}

var actions = map[policy.Action]twotier.Action{
	policy.LocalShare: twotier.LocalShare,
	policy.Allow:      twotier.Allow,
	policy.Deny:       twotier.Deny,
}
