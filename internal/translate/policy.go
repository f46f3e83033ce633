package translate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Policy returns what a sidecar enforces for p. The object is one that the API
// server defaulted. The error names every field that is wrong, with its cure.
func Policy(p *v1alpha1.RateLimitPolicy) (policy.Policy, error) {
	translated, errs := translate(p)
	return translated, errs.ToAggregate()
}

// translate returns the translation of p and all that is wrong with it. Where it
// returns errors the translation is of no use.
func translate(p *v1alpha1.RateLimitPolicy) (policy.Policy, field.ErrorList) {
	spec := field.NewPath("spec")
	t := translator{errs: validateSelector(&p.Spec.PodSelector, spec.Child("podSelector"))}
	translated := policy.Policy{
		Namespace:          p.Namespace,
		Name:               p.Name,
		Generation:         Generation(p),
		Mode:               policy.Mode(p.Spec.Mode),
		Store:              store(p.Spec.Store),
		Consistency:        consistency(p.Spec.Consistency),
		OnStoreUnavailable: policy.Action(p.Spec.OnStoreUnavailable.Action),
		ClientIP:           clientIP(p.Spec.ClientIP),
	}
	for i := range p.Spec.Limits {
		translated.Limits = append(translated.Limits, t.limit(spec.Child("limits").Index(i), &p.Spec.Limits[i]))
	}
	if len(t.errs) == 0 {
		t.errs = accepted(spec, translated)
	}
	return translated, t.errs
}

// accepted reports whether sidecars would accept p. One policy that they refuse
// would hold back every other of its pods, so nothing may pass here that does
// not pass there.
func accepted(spec *field.Path, p policy.Policy) field.ErrorList {
	snapshot := policy.Snapshot{Cluster: "any", Policies: []policy.Policy{p}}
	if _, _, err := policy.Encode(snapshot); err != nil {
		return field.ErrorList{field.Invalid(spec, field.OmitValueType{}, err.Error())}
	}
	return nil
}

func store(s v1alpha1.Store) policy.Store {
	out := policy.Store{Type: policy.StoreType(s.Type)}
	if s.Redis != nil {
		out.Address = s.Redis.Address
	}
	return out
}

func consistency(c v1alpha1.Consistency) policy.Consistency {
	out := policy.Consistency{Mode: policy.ConsistencyMode(c.Mode), Batch: batch(c)}
	if out.Mode == policy.Leased {
		out.Size, out.Expiry = policy.Fixed, policy.Coupled
	}
	return out
}

// batch returns the size of a lease, 0 where nothing is leased.
func batch(c v1alpha1.Consistency) int64 {
	switch {
	case c.Mode != v1alpha1.LeasedMode:
		return 0
	case c.Lease == nil:
		return v1alpha1.DefaultBatch
	default:
		return c.Lease.Size.Batch
	}
}

func clientIP(c *v1alpha1.ClientIP) policy.ClientIP {
	if c == nil {
		return policy.ClientIP{}
	}
	var out policy.ClientIP
	if c.TrustedHops != nil {
		out.TrustedHops = int(*c.TrustedHops)
	}
	for _, cidr := range c.TrustedCIDRs {
		out.TrustedCIDRs = append(out.TrustedCIDRs, string(cidr))
	}
	return out
}

// A translator collects what is wrong on the way.
type translator struct {
	errs field.ErrorList
}

func (t *translator) limit(path *field.Path, l *v1alpha1.Limit) policy.Limit {
	out := policy.Limit{Name: l.Name, Key: key(l.Key)}
	for i := range l.Match {
		out.Match = append(out.Match, t.match(path.Child("match").Index(i), &l.Match[i]))
	}
	for i, r := range l.Rates {
		out.Rates = append(out.Rates, t.rate(path.Child("rates").Index(i), r))
	}
	return out
}

func (t *translator) rate(path *field.Path, r v1alpha1.Rate) limiter.Rate {
	window, err := micros(r.Window)
	if err != nil {
		t.errs = append(t.errs, field.Invalid(path.Child("window"), r.Window, err.Error()))
	}
	return limiter.Rate{Limit: r.Limit, Window: window}
}

func (t *translator) match(path *field.Path, m *v1alpha1.Match) policy.Match {
	var out policy.Match
	for _, method := range m.Methods {
		out.Methods = append(out.Methods, string(method))
	}
	for i, p := range m.Paths {
		t.value(path.Child("paths").Index(i).Child("value"), p.Value, p.Type == v1alpha1.PathRegularExpression)
		out.Paths = append(out.Paths, policy.PathMatch{Type: policy.MatchType(p.Type), Value: p.Value})
	}
	for i, h := range m.Headers {
		t.value(path.Child("headers").Index(i).Child("value"), h.Value, h.Type == v1alpha1.HeaderRegularExpression)
		out.Headers = append(out.Headers, policy.HeaderMatch{Type: policy.MatchType(h.Type), Name: string(h.Name), Value: h.Value})
	}
	return out
}

// value checks a value that requests are compared with.
func (t *translator) value(path *field.Path, value string, expression bool) {
	err := validateValue(path, value, expression)
	if err != nil {
		t.errs = append(t.errs, err)
	}
}

func key(k *v1alpha1.Key) *policy.Key {
	if k == nil {
		return nil
	}
	out := &policy.Key{OnMissing: policy.OnMissing(k.OnMissing), MaxKeys: int(k.MaxKeys)}
	for _, part := range k.Parts {
		translated := policy.KeyPart{Type: policy.KeySource(part.Type)}
		if part.Header != nil {
			translated.Header = string(part.Header.Name)
		}
		out.Parts = append(out.Parts, translated)
	}
	return out
}
