package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// A Set is a snapshot compiled for the request path. It is immutable.
type Set struct {
	Snapshot Snapshot
	Limits   []*CompiledLimit // in the order of the snapshot

	byName map[limitName]*CompiledLimit
	pools  []*CompiledPool
}

type limitName struct{ namespace, policy, limit string }

// A CompiledLimit is one limit of a set, ready to judge requests.
type CompiledLimit struct {
	Policy *Policy
	Limit  *Limit

	matches matchers
	exempt  matchers
	key     keyer
	tenants tenants
	costs   costHeaders
}

// Compile validates s and returns it ready for use. The set keeps s: the caller
// no longer changes it. A policy of the set that says nothing of responses has the
// DefaultResponse.
func Compile(s Snapshot) (*Set, error) {
	return new(Set).Recompile(s, func(*Policy) bool { return true })
}

// Recompile is Compile of a snapshot whose policies are those of the set, but for the changed ones. The
// others are neither validated nor compiled: the two sets share their limits.
func (s *Set) Recompile(next Snapshot, changed func(*Policy) bool) (*Set, error) {
	var wrong problems
	next.validateFrame(&wrong)
	next.Policies = slices.Clone(next.Policies) // their responses are filled in
	set := &Set{Snapshot: next, byName: make(map[limitName]*CompiledLimit, len(s.byName))}
	for i := range next.Policies {
		p := &next.Policies[i]
		limits := s.compiled(p)
		if limits == nil || changed(p) {
			before := len(wrong)
			if p.validate(&wrong, entry("policies", i)); len(wrong) > before {
				continue
			}
			var err error
			if limits, err = compilePolicy(*p); err != nil {
				return nil, fmt.Errorf("policies[%d].%w", i, err)
			}
		}
		*p = *limits[0].Policy
		for _, l := range limits {
			set.Limits = append(set.Limits, l)
			set.byName[limitName{p.Namespace, p.Name, l.Limit.Name}] = l
		}
	}
	next.validateEachPool(&wrong)
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	if err := set.compilePools(); err != nil {
		return nil, err
	}
	return set, nil
}

// compiled returns the limits of the policy of that name in the set, nil when it has none.
func (s *Set) compiled(of *Policy) []*CompiledLimit {
	at, found := slices.BinarySearchFunc(s.Limits, of, func(l *CompiledLimit, p *Policy) int { return l.Policy.compare(p) })
	if !found {
		return nil
	}
	return s.Limits[at : at+len(s.Limits[at].Policy.Limits)]
}

// compilePolicy returns the limits of a valid policy. They share memory with no other policy, which
// would live as long.
func compilePolicy(of Policy) ([]*CompiledLimit, error) {
	p := &of
	p.Response = p.Response.orDefault()
	tokens, err := compileProviders(p.JWTProviders)
	if err != nil {
		return nil, err
	}
	var limits []*CompiledLimit
	for j := range p.Limits {
		l, err := compileLimit(p, &p.Limits[j], tokens)
		if err != nil {
			return nil, fmt.Errorf("limits[%d]: %w", j, err)
		}
		limits = append(limits, l)
	}
	return limits, nil
}

func (s *Set) compilePools() error {
	add := func(p *Pool, path string) error {
		c, err := compilePool(p)
		if err != nil {
			return fmt.Errorf("%s.%w", path, err)
		}
		s.pools = append(s.pools, c)
		if keyed := c.perKey(); keyed != nil {
			s.pools = append(s.pools, keyed)
		}
		return nil
	}
	if p := s.Snapshot.Pool; p != nil {
		if err := add(p, "pool"); err != nil {
			return err
		}
	}
	for i := range s.Snapshot.Pools {
		if err := add(&s.Snapshot.Pools[i], entry("pools", i)); err != nil {
			return err
		}
	}
	slices.SortFunc(s.pools, func(a, b *CompiledPool) int { return a.Pool.compare(b.Pool) })
	return nil
}

// Pools returns the pools that requests need slots of, ordered by namespace and name. A pool
// with a key is two: what Pool.PerKey returns comes first. That is the order in which to ask
// them, for every request: two that wait for each other's slots
// would wait in vain.
func (s *Set) Pools() []*CompiledPool { return s.pools }

// Groups returns the limits in the order of the snapshot, each in a group of its own but for the
// alternatives, which are together, in the place of the first of them. One of each group has
// to admit a request.
func (s *Set) Groups() [][]*CompiledLimit {
	var groups [][]*CompiledLimit
	placed := make(map[*CompiledLimit]bool)
	for _, l := range s.Limits {
		if placed[l] {
			continue
		}
		group := []*CompiledLimit{l}
		for _, names := range l.Policy.AnyOf {
			if slices.Contains(names, l.Limit.Name) {
				group = group[:0]
				for _, name := range names {
					group = append(group, s.Lookup(l.Policy.Namespace, l.Policy.Name, name))
				}
			}
		}
		for _, one := range group {
			placed[one] = true
		}
		groups = append(groups, group)
	}
	return groups
}

// Lookup returns the limit of that name, nil when there is none.
func (s *Set) Lookup(namespace, policy, limit string) *CompiledLimit {
	return s.byName[limitName{namespace, policy, limit}]
}

func compileLimit(p *Policy, l *Limit, tokens verifiers) (*CompiledLimit, error) {
	c := &CompiledLimit{Policy: p, Limit: l, costs: compileCost(l.Cost)}
	client, err := compileClientIP(p.ClientIP)
	if err != nil {
		return nil, err
	}
	if c.matches, err = compileMatches("match", l.Match, matching{client, tokens, true}); err != nil {
		return nil, err
	}
	if c.exempt, err = compileMatches("exempt", l.Exempt, matching{client, tokens, false}); err != nil {
		return nil, err
	}
	if c.key, err = compileKey(l.Key, client, tokens); err != nil {
		return nil, err
	}
	c.tenants, err = compileTenants(l.Fairness, client, tokens)
	return c, err
}

// Shadow reports whether refusals of the limit are counted and let pass.
func (l *CompiledLimit) Shadow() bool { return l.Policy.Mode == Shadow || l.Limit.Mode == Shadow }

// A CompiledPool is a pool of a set, ready to judge requests.
type CompiledPool struct {
	Pool *Pool

	matches    matchers
	exempt     matchers
	ignore     matchers
	partitions []matchers
	key        keyer // of requests that need a slot
	keyed      bool  // the limit is that of every value
}

func compilePool(p *Pool) (*CompiledPool, error) {
	c := &CompiledPool{Pool: p}
	var err error
	if c.matches, err = compileMatches("match", p.Match, matching{unknown: true}); err != nil {
		return nil, err
	}
	if c.exempt, err = compileMatches("exempt", p.Exempt, matching{}); err != nil {
		return nil, err
	}
	if c.ignore, err = compileMatches("algorithm.ignore", p.Algorithm.Ignore, matching{}); err != nil {
		return nil, err
	}
	if p.Key != nil {
		if c.key, err = compileKey(&Key{Parts: p.Key.Parts, OnMissing: p.Key.OnMissing}, clientFinder{}, nil); err != nil {
			return nil, err
		}
	}
	for i := range p.Partitions {
		matches, err := compileMatches("match", p.Partitions[i].Match, matching{})
		if err != nil {
			return nil, fmt.Errorf("%s.%w", entry("partitions", i), err)
		}
		c.partitions = append(c.partitions, matches)
	}
	return c, nil
}

// perKey returns the pool that divides the limit per key, nil when there is none.
func (c *CompiledPool) perKey() *CompiledPool {
	p := c.Pool.PerKey()
	if p == nil {
		return nil
	}
	return &CompiledPool{Pool: p, matches: c.matches, exempt: c.exempt, key: c.key, keyed: true}
}

// PerKey reports whether the limit of the pool is that of every value of its key.
func (c *CompiledPool) PerKey() bool { return c.keyed }

// Value returns the value of the key that r is counted under, and the part that is missing
// when the outcome is Rejected. A pool whose limit is of all requests counts all under one.
func (c *CompiledPool) Value(r *Request) (value string, outcome Outcome, missing KeyPart) {
	if !c.keyed {
		return "", Counted, KeyPart{}
	}
	return c.key.value(r)
}

// Shadow reports whether requests that find no slot are counted and let pass.
func (c *CompiledPool) Shadow() bool { return c.Pool.Mode == Shadow }

// Exempt reports whether r needs no slot, because the pool does not match it or exempts it.
func (c *CompiledPool) Exempt(r *Request) bool {
	return !c.matches.none() && !c.matches.inAnyReading(r) || c.exempt.inEveryReading(r)
}

// Ignore reports whether the latency of r says nothing of the backend's load.
func (c *CompiledPool) Ignore(r *Request) bool { return c.ignore.inEveryReading(r) }

// Partition returns the index of the partition that r belongs to, the first that
// matches it, and slots.Rest when none does. Its path is read decoded and clean: every
// partition is within the limit of the pool, so no spelling escapes that.
func (c *CompiledPool) Partition(r *Request) int {
	for i := range c.partitions {
		if matches := &c.partitions[i]; matches.none() || matches.inPlainReading(r) {
			return i
		}
	}
	return slots.Rest
}
