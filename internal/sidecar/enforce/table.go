package enforce

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

var errClosed = errors.New("the sidecar is stopping")

// A table is the limits in force between two changes of policy.
type table struct {
	set     *policy.Set
	version string
	limits  []*limit       // in the order of the snapshot
	asked   []alternatives // in the order they are asked: those in shadow last
	byScope map[store.Scope]*limit
	closed  bool // the enforcer is: nothing is decided any more

	// users is read-locked by every decision, so that a limiter is closed only
	// after the last decision that may use it.
	users sync.RWMutex
}

// A limit is one limit in force. Its engine outlives changes of policy as long as
// the scope stays.
type limit struct {
	*policy.CompiledLimit
	scope         store.Scope
	shadow        bool
	windowCoupled bool
	overrides     map[string]limiter.Params // by the value of the key
	store         twotier.Store
	engine        Limiter
	counts        *count.Limit
	matching      *matching
}

// newLimit returns the limit without a store and an engine.
func newLimit(cluster string, l *policy.CompiledLimit, shadow bool) *limit {
	return &limit{
		CompiledLimit: l,
		scope:         scopeOf(cluster, l),
		shadow:        shadow || l.Shadow(),
		windowCoupled: l.Limit.Params(l.Policy).Algorithm.WindowCoupled(),
		overrides:     l.Limit.Overridden(l.Policy),
	}
}

func scopeOf(cluster string, l *policy.CompiledLimit) store.Scope {
	return store.Scope{Cluster: cluster, Namespace: l.Policy.Namespace, Policy: l.Policy.Name, Limit: l.Limit.Name}
}

// settings returns what the counts depend on, among that many holders.
func (l *limit) settings(holders int64) count.Settings {
	return count.Settings{
		Generation: l.Policy.Generation,
		Rates:      l.Limit.Rates,
		Keyed:      l.Limit.Key != nil,
		MaxKeys:    l.maxKeys(),
		Holders:    holders,
		Clusters:   l.Limit.Clusters,
		Overrides:  l.overrides,
		Lag:        time.Duration(max(l.Limit.Lifetime, l.Limit.MaxDelay)) * time.Microsecond,
	}
}

// maxPairs returns how many pairs of a value and a tenant may have credits of their
// own: of each value those of the declared tenants and one more.
func (l *limit) maxPairs() int {
	f := l.Limit.Fairness
	if f == nil {
		return l.maxKeys()
	}
	return min(max(l.maxKeys()*(len(f.Weights)+1), len(f.Weights)+limiter.MaxTenants), policy.MaxTrackedKeys)
}

// maxKeys returns how many counters of its own the limit may have.
func (l *limit) maxKeys() int {
	if l.Limit.Key == nil {
		return 1
	}
	return l.Limit.Key.MaxKeys
}

// sharedKeys returns how many counters the other values share.
func (l *limit) sharedKeys() int {
	if l.Limit.Key == nil {
		return 1
	}
	return l.Limit.Key.SharedKeys()
}

func (l *limit) name() count.Name {
	return count.Name{Namespace: l.Policy.Namespace, Policy: l.Policy.Name, Limit: l.Limit.Name}
}

// enter returns the table in force; leave it after the decision. It waits for nobody: a
// table that cannot be read-locked was replaced, by one that is in force.
func (e *Enforcer) enter() *table {
	for {
		t := e.current.Load()
		if !t.users.TryRLock() {
			continue
		}
		if e.current.Load() == t {
			return t
		}
		t.users.RUnlock()
	}
}

func (t *table) leave() { t.users.RUnlock() }

// wait returns when no decision uses t, which is no longer in force.
func (t *table) wait() {
	t.users.Lock()
	t.users.Unlock() //nolint:staticcheck // the callers inside have left
}

// close waits for the decisions that use t, which is no longer in force, and
// closes the engines that next does not have, which holds no lock.
func (t *table) close(ctx context.Context, next *table) {
	t.wait()
	var engines sync.WaitGroup
	for scope, l := range t.byScope {
		if _, kept := next.byScope[scope]; !kept {
			engines.Go(func() { l.engine.Close(ctx) })
		}
	}
	engines.Wait()
}

func (t *table) names() map[count.Name]bool {
	names := make(map[count.Name]bool, len(t.limits))
	for _, l := range t.limits {
		names[l.name()] = true
	}
	return names
}

func (t *table) find(namespace, name, limitName string) (*limit, error) {
	known := false
	for _, l := range t.limits {
		if l.Policy.Namespace != namespace || l.Policy.Name != name {
			continue
		}
		if l.Limit.Name == limitName {
			return l, nil
		}
		known = true
	}
	if known {
		return nil, &NotFoundError{Field: "limit", Name: limitName}
	}
	return nil, &NotFoundError{Field: "policy", Name: name}
}
