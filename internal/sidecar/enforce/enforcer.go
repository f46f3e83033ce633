package enforce

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Mode says what a whole sidecar does with its policies.
type Mode string

// The modes of a sidecar.
const (
	Enforce Mode = "enforce" // as the policies say
	Shadow  Mode = "shadow"  // as if every policy were in mode Shadow
	Bypass  Mode = "bypass"  // nothing: requests pass uncounted
)

// Stores opens the stores that policies name. Retain closes those not named. Budget
// returns what hands on a budget that clusters share, a new one each time.
type Stores interface {
	Open(s policy.Store) (twotier.Store, error)
	Budget() twotier.Store
	Retain(used map[policy.Store]bool)
}

// Config is what an Enforcer is made of.
type Config struct {
	Namespace string // of the pod: where Check looks for policies
	Mode      Mode
	Stores    Stores
	Memory    count.Memory // for keys that are counted apart; nil admits all
	Log       *slog.Logger
	// NewLimiter makes the engine of a limit.
	NewLimiter func(cfg twotier.Config, s twotier.Store) (Limiter, error)
}

// An Enforcer decides requests by the policies it was last given. All methods
// may be called concurrently.
type Enforcer struct {
	cfg     Config
	book    *count.Book
	current atomic.Pointer[table]

	mu      sync.Mutex // held while policies are replaced; guards the rest
	holders map[policyName]int64
	closing sync.WaitGroup // limiters that were removed and give credits back
}

type policyName struct{ namespace, policy string }

// New returns an Enforcer without policies. Close releases it.
func New(cfg Config) *Enforcer {
	e := &Enforcer{cfg: cfg, book: count.NewBook(store.HashValue, cfg.Memory), holders: make(map[policyName]int64)}
	e.current.Store(&table{set: new(policy.Set)})
	return e
}

// closeTimeout bounds how long a limiter that was removed may take to give its
// credits back.
const closeTimeout = 5 * time.Second

// Apply replaces the policies. Limits that stay keep their counters and, unless
// they go to another store, their credits; limits that go give their credits back in
// the background. When a policy is draining, Apply returns after the last decision
// that may have asked its store. On an error nothing changes.
func (e *Enforcer) Apply(set *policy.Set, version string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.current.Load()
	if old.closed {
		return errClosed
	}
	next, err := e.build(set, version, old)
	if err != nil {
		return err
	}
	e.current.Store(next)
	if drains(set) {
		old.wait()
	}
	e.book.Retain(next.names(), time.Now())
	e.forget(set)
	e.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		old.close(ctx, next)
		e.retainStores()
	})
	return nil
}

// build returns the table of the set. Limits that the set shares with that of old stay as they are, and
// nothing of them is touched. Others that old enforces already are
// reconfigured, which happens last because it cannot fail with what is valid.
func (e *Enforcer) build(set *policy.Set, version string, old *table) (*table, error) {
	next := &table{
		set: set, version: version, limits: make([]*limit, 0, len(set.Limits)), byScope: make(map[store.Scope]*limit, len(set.Limits)),
	}
	var changed []*limit
	for _, compiled := range set.Limits {
		l := old.byScope[scopeOf(set.Snapshot.Cluster, compiled)]
		if l == nil || l.CompiledLimit != compiled {
			var err error
			if l, err = e.open(set.Snapshot.Cluster, compiled, l); err != nil {
				return nil, err
			}
			changed = append(changed, l)
		}
		next.limits = append(next.limits, l)
		next.byScope[l.scope] = l
	}
	for _, l := range changed {
		holders := e.holders[policyName{l.Policy.Namespace, l.Policy.Name}]
		if err := l.work(l.engineConfig(holders), old.byScope[l.scope], e.cfg.NewLimiter); err != nil {
			return nil, err
		}
		l.counts = e.book.Open(l.name(), l.settings(holders))
	}
	for _, group := range set.Groups() {
		var all alternatives
		for _, l := range group {
			all = append(all, next.byScope[scopeOf(set.Snapshot.Cluster, l)])
		}
		next.asked = append(next.asked, all)
	}
	slices.SortStableFunc(next.asked, func(a, b alternatives) int { return order(a.shadow()) - order(b.shadow()) })
	return next, nil
}

// open returns a limit with its store. running is the one that is in force in its place, nil for none.
func (e *Enforcer) open(cluster string, compiled *policy.CompiledLimit, running *limit) (*limit, error) {
	l := newLimit(cluster, compiled, e.cfg.Mode == Shadow)
	l.matching = matchingOf(l, running)
	if err := l.open(e.cfg.Stores, running); err != nil {
		return nil, fmt.Errorf("policy %s/%s: %w", compiled.Policy.Namespace, compiled.Policy.Name, err)
	}
	cfg := l.engineConfig(0)
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("limit %q of policy %s/%s: %w", compiled.Limit.Name, compiled.Policy.Namespace, compiled.Policy.Name, err)
	}
	return l, nil
}

// order puts limits in shadow behind the others: they are asked about requests that
// pass.
func order(shadow bool) int {
	if shadow {
		return 1
	}
	return 0
}

func drains(set *policy.Set) bool {
	return slices.ContainsFunc(set.Snapshot.Policies, func(p policy.Policy) bool { return p.Draining })
}

// SetHolders says how many sidecars enforce the policy, now and after it is
// replaced.
func (e *Enforcer) SetHolders(namespace, name string, n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.holders[policyName{namespace, name}] = n
	e.book.SetHolders(namespace, name, n)
	for _, l := range e.current.Load().limits {
		if l.Policy.Namespace == namespace && l.Policy.Name == name {
			l.engine.SetHolders(n)
		}
	}
}

// Holders returns the numbers that SetHolders was called with.
func (e *Enforcer) Holders() []*fleetpb.Holders_Count {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*fleetpb.Holders_Count
	for name, n := range e.holders {
		if n > 0 {
			out = append(out, &fleetpb.Holders_Count{Namespace: name.namespace, Policy: name.policy, Holders: n})
		}
	}
	return out
}

// maxGone is of how many policies that are gone the number of holders is kept.
const maxGone = 256

// forget drops the holders of policies that are gone once they are many; mu is held. One
// that soon comes back needs them: a session is sent a number only when it changes.
func (e *Enforcer) forget(set *policy.Set) {
	if len(e.holders) <= len(set.Snapshot.Policies)+maxGone {
		return
	}
	known := make(map[policyName]int64, len(set.Snapshot.Policies))
	for i := range set.Snapshot.Policies {
		name := policyName{set.Snapshot.Policies[i].Namespace, set.Snapshot.Policies[i].Name}
		if n, ok := e.holders[name]; ok {
			known[name] = n
		}
	}
	e.holders = known
}

// retainStores closes the stores that no limit uses any more.
func (e *Enforcer) retainStores() {
	e.mu.Lock()
	defer e.mu.Unlock()
	used := make(map[policy.Store]bool)
	for _, l := range e.current.Load().limits {
		used[l.Policy.Store] = true
	}
	e.cfg.Stores.Retain(used)
}

// Set returns the policies in force and their version.
func (e *Enforcer) Set() (set *policy.Set, version string) {
	t := e.current.Load()
	return t.set, t.version
}

// Close gives all credits back, each once, and waits until that is done or ctx
// is. Decisions fail afterwards. Counts can still be reported, and are final.
func (e *Enforcer) Close(ctx context.Context) {
	e.mu.Lock()
	old := e.current.Load()
	next := &table{set: old.set, version: old.version, limits: old.limits, closed: true}
	e.current.Store(next)
	e.mu.Unlock()
	old.close(ctx, next)
	e.closing.Wait()
	e.book.Finish()
	e.cfg.Stores.Retain(nil)
}
