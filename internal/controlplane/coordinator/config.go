package coordinator

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/store"
)

// A config is one snapshot, encoded once for all sessions that get it.
type config struct {
	snapshot policy.Snapshot
	message  *fleetpb.ToHolder
	secret   bool // the message carries credentials, which a holder never has by itself
	version  string
	limits   map[limitName]*published
	policies map[types.NamespacedName]*policy.Policy
	pools    map[types.NamespacedName]*dividedPool
	servers  []policy.Store           // one of each server that holders ask by themselves
	opened   atomic.Bool              // its durable counters were
	content  func() *revision.Content // of the message; nil when it cannot be taken apart
	steps    steps
}

// A limitName names a limit within one cluster.
type limitName struct {
	policy types.NamespacedName
	limit  string
}

// published is what a limit's counters work by.
type published struct {
	params limiter.Params            // of every counter that has none of its own
	own    map[string]limiter.Params // by hash
	span   limiter.Rate              // of params, with the longest window
	scope  store.Scope
	keyed  bool
	most   int  // values that a sidecar tracks
	shared int  // counters that the others share
	here   bool // counters are in this controller's store
	// gateway is the address by which holders name the store that they reach through this
	// controller, empty for none; clocks says that it has several.
	gateway string
	clocks  bool
	budget  *policy.BudgetRef // nil: the counters are all there is
}

// of returns what the counter of that hash works by.
func (p *published) of(hash string) limiter.Params {
	if own, ok := p.own[hash]; ok {
		return own
	}
	return p.params
}

func newConfig(s policy.Snapshot, secrets []*fleetpb.Secret) (*config, error) {
	data, version, err := policy.Encode(s)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	c := &config{
		snapshot: s,
		message: &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Config{
			Config: &fleetpb.Config{Version: version, Snapshot: data, Secrets: secrets},
		}},
		version:  version,
		secret:   len(secrets) > 0,
		limits:   map[limitName]*published{},
		policies: map[types.NamespacedName]*policy.Policy{},
		pools:    map[types.NamespacedName]*dividedPool{},
	}
	c.content = sync.OnceValue(func() *revision.Content {
		content, err := revision.ContentOf(data)
		if err != nil {
			return nil // the bytes were not encoded by this version
		}
		return content
	})
	known := map[string]bool{}
	for i := range s.Policies {
		c.add(&s.Policies[i])
		if of := s.Policies[i].Store; of.Type != policy.ControllerStore && !of.Gateway && !known[of.Server()] {
			known[of.Server()] = true
			c.servers = append(c.servers, of)
		}
	}
	if s.Pool != nil {
		c.addPool(s.Pool)
	}
	for i := range s.Pools {
		c.addPool(&s.Pools[i])
	}
	return c, nil
}

func (c *config) addPool(p *policy.Pool) {
	divided := newDividedPool(c.snapshot.Cluster, p)
	c.pools[divided.name] = divided
	if keyed := p.PerKey(); keyed != nil {
		c.addPool(keyed)
	}
}

func (c *config) add(p *policy.Policy) {
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	c.policies[name] = p
	for _, l := range p.Limits {
		limit := &published{
			params: l.Params(p),
			own:    make(map[string]limiter.Params),
			span:   l.Params(p).Longest(),
			scope:  store.Scope{Cluster: c.snapshot.Cluster, Namespace: p.Namespace, Policy: p.Name, Limit: l.Name},
			keyed:  l.Key != nil,
			here:   p.Store.Type == policy.ControllerStore,
			budget: l.Budget,
		}
		if p.Store.Gateway {
			limit.gateway, limit.clocks = p.Store.Sent().Address, p.Store.Cluster
		}
		for value, params := range l.Overridden(p) {
			limit.own[store.HashValue(value)] = params
		}
		if limit.keyed {
			limit.most, limit.shared = l.Key.MaxKeys, l.Key.SharedKeys()
		}
		c.limits[limitName{policy: name, limit: l.Name}] = limit
	}
}

// has reports whether c, which may be nil, holds the policy.
func (c *config) has(name types.NamespacedName) bool {
	return c != nil && c.policies[name] != nil
}

// policy returns the policy of that name, nil when c, which may be nil, has none.
func (c *config) policy(name types.NamespacedName) *policy.Policy {
	if c == nil {
		return nil
	}
	return c.policies[name]
}

// generation returns that of the policy in c, which may be nil; 0 when it is not
// there, or a limit of it is pending.
func (c *config) generation(name types.NamespacedName) int64 {
	p := c.policy(name)
	if p == nil || slices.ContainsFunc(p.Limits, func(l policy.Limit) bool { return l.Pending }) {
		return 0
	}
	return p.Generation
}

// differing returns the policies that differ between two configs: those that only one
// has, and those that were edited. Either config may be nil.
func differing(a, b *config) []types.NamespacedName {
	if a == b {
		return nil
	}
	var out []types.NamespacedName
	for _, pair := range [][2]*config{{a, b}, {b, a}} {
		if pair[0] == nil {
			continue
		}
		for name, p := range pair[0].policies {
			other := pair[1].policy(name)
			if other == nil || pair[0] == a && !reflect.DeepEqual(p, other) {
				out = append(out, name)
			}
		}
	}
	return out
}

// configs holds the encoded snapshots of each namespace, so that pods that
// enforce the same share one.
type configs map[string][]*config

// of returns the config of a snapshot, encoded, and its secrets fetched, only when
// it is new.
func (cs configs) of(namespace string, s policy.Snapshot, secrets func(policy.Snapshot) ([]*fleetpb.Secret, error)) (*config, error) {
	for _, c := range cs[namespace] {
		if reflect.DeepEqual(c.snapshot, s) {
			return c, nil
		}
	}
	fetched, err := secrets(s)
	if err != nil {
		return nil, err
	}
	c, err := newConfig(s, fetched)
	if err != nil {
		return nil, err
	}
	cs[namespace] = append(cs[namespace], c)
	return c, nil
}

// keep drops all but the configs that are in use.
func (cs configs) keep(namespace string, used map[*config]struct{}) {
	var kept []*config
	for _, c := range cs[namespace] {
		if _, ok := used[c]; ok {
			kept = append(kept, c)
		}
	}
	if kept == nil {
		delete(cs, namespace)
		return
	}
	cs[namespace] = kept
}

// gateways returns the addresses of the stores that holders of any config reach through this
// controller.
func (cs configs) gateways() map[string]struct{} {
	used := map[string]struct{}{}
	for _, all := range cs {
		for _, c := range all {
			for i := range c.snapshot.Policies {
				if of := c.snapshot.Policies[i].Store; of.Gateway {
					used[of.Sent().Address] = struct{}{}
				}
			}
		}
	}
	return used
}

// A dividedPool is what the shares of a pool follow from.
type dividedPool struct {
	name   types.NamespacedName
	key    pool.Key
	params pool.Params
	here   bool // this controller divides it
	policy *policy.Pool
}

func newDividedPool(cluster string, p *policy.Pool) *dividedPool {
	return &dividedPool{
		name:   types.NamespacedName{Namespace: p.Namespace, Name: p.Name},
		key:    pool.Key{Cluster: cluster, Namespace: p.Namespace, Name: p.Name},
		params: p.Params(),
		here:   p.Coordinator.Type == policy.ControllerStore,
		policy: p,
	}
}

// poolGeneration returns that of the pool in c, which may be nil; 0 when it is not there.
func (c *config) poolGeneration(name types.NamespacedName) int64 {
	if !c.hasPool(name) {
		return 0
	}
	return c.pools[name].policy.Generation
}

// hasPool reports whether c, which may be nil, holds the pool.
func (c *config) hasPool(name types.NamespacedName) bool {
	return c != nil && c.pools[name] != nil
}
