package enforce

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A Descriptor is one of the descriptors of a call of Envoy's rate limit service.
type Descriptor struct {
	Request policy.Request // of policy.NewDescriptor
	// Hits is what it costs, at least 0. With 0 it asks whether one more would be
	// admitted, and takes nothing.
	Hits int64
}

// A Ruling answers a call. The zero ruling refuses.
type Ruling struct {
	Allowed bool
	Known   bool // whether the domain names policies of the pod
	// States say of each descriptor which limit binds it: of those that refused
	// it the one that does so longest, or else the one with the least left.
	States    []QuotaState
	Admission *Admission // as Verdict's
}

// DecideDescriptors decides all descriptors of a call as one request: it asks every
// limit that applies to one of them and belongs to a policy of the domain. The domain
// is the name of a policy in the pod's namespace, namespace/name, or "*" or nothing for
// all policies of the pod. A counter that several descriptors fall under is asked once,
// for the most that one of them costs. Other than Decide it goes on after a refusal,
// for the states of the other descriptors; what was admitted is then taken back all
// the same. Everything is admitted for a domain that is not known. Errors are as
// Decide's.
func (e *Enforcer) DecideDescriptors(ctx context.Context, domain string, ds []Descriptor) (Ruling, error) {
	return e.decideCall(ctx, &call{in: e.domain(domain), descriptors: ds})
}

// DecideHeld is DecideDescriptors for a call that waits for nothing. The error is
// twotier.ErrNotHeld where it would have to, and then nothing was taken or counted.
func (e *Enforcer) DecideHeld(domain string, ds []Descriptor) (Ruling, error) {
	return e.decideCall(context.Background(), &call{in: e.domain(domain), descriptors: ds, held: true})
}

// A call is what is decided as one request.
type call struct {
	in          domain
	descriptors []Descriptor
	held        bool // nothing may be waited for
}

func (e *Enforcer) decideCall(ctx context.Context, c *call) (Ruling, error) {
	ruling := Ruling{Allowed: true, Known: true, States: make([]QuotaState, len(c.descriptors))}
	if e.cfg.Mode == Bypass {
		return ruling, nil
	}
	t := e.enter()
	defer t.leave()
	if t.closed {
		return Ruling{}, errClosed
	}
	if ruling.Known = c.in.known(t.set); !ruling.Known {
		return ruling, nil
	}
	var few [4]share
	taken := few[:0]
	for _, a := range t.asked {
		if a.shadow() && !ruling.Allowed {
			break // they come last
		}
		more, err := a.rule(ctx, e, c, &ruling, taken)
		if err != nil {
			cancel(taken)
			return Ruling{}, err
		}
		taken = more
	}
	ruling.conclude(taken)
	return ruling, nil
}

// conclude lets the call pass with what was taken, or takes that back.
func (r *Ruling) conclude(taken []share) {
	if r.Allowed {
		r.Admission = admit(taken)
		return
	}
	cancel(taken)
	for i := range r.States {
		r.States[i].giveBack()
	}
}

// note takes down what the limit that was asked says of the descriptors.
func (r *Ruling) note(of []int, s share, refusal *Refusal) {
	if refusal != nil {
		r.Allowed = false
	}
	shown := quotaStateOf(s, refusal)
	if shown.Limit == nil {
		return
	}
	for _, i := range of {
		if shown.Binds(r.States[i]) {
			r.States[i] = shown
		}
	}
}

// A charge is what descriptors ask of one counter, or lack for its key.
type charge struct {
	twotier.Request                // its cost is 0 to take nothing
	rejected        bool           // the key lacks the part
	missing         policy.KeyPart // of a key that is rejected
	of              []int          // the descriptors
}

// charges returns what the descriptors ask of the limit, in their order.
func (l *limit) charges(ds []Descriptor) []charge {
	var all []charge
	for i := range ds {
		r := &ds[i].Request
		if !l.applies(r) {
			continue
		}
		value, outcome, missing := l.Value(r)
		if outcome == policy.Skipped {
			continue
		}
		c := charge{Request: twotier.Request{Value: value, Tenant: l.Tenant(r)}, rejected: outcome == policy.Rejected}
		if c.rejected {
			c.missing = missing
		}
		at := slices.IndexFunc(all, c.same)
		if at < 0 {
			at, all = len(all), append(all, c)
		}
		all[at].Cost = max(all[at].Cost, ds[i].Hits)
		all[at].of = append(all[at].of, i)
	}
	return all
}

// same reports whether both ask the same of the same counter, but for the cost.
func (c *charge) same(other charge) bool {
	return c.Value == other.Value && c.Tenant == other.Tenant && c.rejected == other.rejected && c.missing == other.missing
}

// charge asks the limit.
func (l *limit) charge(ctx context.Context, c charge, held bool) (a answer, err error) {
	c.Held = held
	switch {
	case c.rejected:
		a = answer{share: share{limit: l}, missing: &c.missing}
	case c.Cost == 0 && held:
		err = twotier.ErrNotHeld
	case c.Cost == 0:
		a, err = l.look(ctx, twotier.Request{Value: c.Value, Tenant: c.Tenant, Cost: 1})
	default:
		a, err = l.acquire(ctx, c.Request)
	}
	a.of = c.of
	return a, err
}

// look asks the counter of a value, and takes nothing. While the store is away its
// failure action answers.
func (l *limit) look(ctx context.Context, r twotier.Request) (answer, error) {
	f, err := l.engine.Peek(ctx, r)
	if err != nil {
		return answer{}, err
	}
	a := answer{share: share{limit: l, value: r.Value, cost: r.Cost, decision: f.Decision}}
	if a.decision.Allowed {
		a.cost = 0 // nothing was taken
	}
	return a, nil
}

// A domain selects policies.
type domain struct {
	all             bool
	namespace, name string
}

// domain reads the domain of a call.
func (e *Enforcer) domain(s string) domain {
	if s == "" || s == "*" {
		return domain{all: true}
	}
	if namespace, name, ok := strings.Cut(s, "/"); ok {
		return domain{namespace: namespace, name: name}
	}
	return domain{namespace: e.cfg.Namespace, name: s}
}

func (d domain) covers(p *policy.Policy) bool {
	return d.all || d.namespace == p.Namespace && d.name == p.Name
}

// known reports whether the domain is one of the set's.
func (d domain) known(set *policy.Set) bool {
	return d.all || slices.ContainsFunc(set.Snapshot.Policies, func(p policy.Policy) bool { return d.covers(&p) })
}
