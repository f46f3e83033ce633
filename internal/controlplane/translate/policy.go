package translate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Policy returns what a sidecar enforces for p, given the budgets of its namespace. The
// object is one that the API server defaulted. The error names every field that is
// wrong, with its cure. When Validate finds nothing wrong, the fault is a budget's: then the
// policy is to be enforced as it was before, or not yet, and never without the limit that
// draws from it.
func Policy(p *v1alpha1.RateLimitPolicy, budgets Budgets) (policy.Policy, error) {
	translated, unmet, errs := translate(p, budgets)
	return translated, append(errs, unmet...).ToAggregate()
}

// translate returns the translation of p, which of its budgets cannot be drawn from,
// and all that is wrong with it. Where it returns errors the translation is of no use. Where
// it returns unmet references, the limits that have them are of no use.
func translate(p *v1alpha1.RateLimitPolicy, budgets Budgets) (translated policy.Policy, unmet, errs field.ErrorList) {
	spec := field.NewPath("spec")
	t := translator{budgets: budgets, providers: p.Spec.JWTProviders, trusts: p.Spec.ClientIP != nil, errs: validateSelector(&p.Spec.PodSelector, spec.Child("podSelector"))}
	lease := spec.Child("consistency", "lease")
	translated = policy.Policy{
		Namespace:          p.Namespace,
		Name:               p.Name,
		Generation:         Generation(p),
		Mode:               policy.Mode(p.Spec.Mode),
		Consistency:        t.consistency(lease, p.Spec.Consistency),
		OnStoreUnavailable: policy.Action(p.Spec.OnStoreUnavailable.Action),
		ClientIP:           clientIP(p.Spec.ClientIP),
		JWTProviders:       t.jwtProviders(spec.Child("jwtProviders"), p),
		Response:           response(&p.Spec.Response),
	}
	translated.Store, translated.Since, translated.Draining = Serving(p)
	translated.ResetAt = resetAt(p)
	for i := range p.Spec.Limits {
		limit := t.limit(spec.Child("limits").Index(i), &p.Spec.Limits[i])
		limit.Retention = retention(p.Spec.Store, &limit)
		translated.Limits = append(translated.Limits, limit)
	}
	for _, group := range p.Spec.AnyOf {
		translated.AnyOf = append(translated.AnyOf, slices.Clone(group.Limits))
	}
	if Draws(p) {
		t.leave(spec.Child("store", "type"), p, &translated)
	}
	if len(t.errs) == 0 && translated.Consistency.Mode == policy.Leased {
		t.lifetimes(lease.Child("lifetime"), p, &translated)
	}
	if len(t.errs) == 0 {
		t.errs = accepted(spec, policy.Snapshot{Policies: []policy.Policy{translated}})
	}
	return translated, t.unmet, t.errs
}

// accepted reports whether sidecars would accept a snapshot of that alone. One object
// that they refuse would hold back every other of its pods, so nothing may pass here
// that does not pass there.
func accepted(spec *field.Path, snapshot policy.Snapshot) field.ErrorList {
	snapshot.Cluster = "any"
	if _, _, err := policy.Encode(snapshot); err != nil {
		return field.ErrorList{field.Invalid(spec, field.OmitValueType{}, err.Error())}
	}
	return nil
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
	budgets   Budgets
	providers []v1alpha1.JWTProvider // that claims may name
	trusts    bool                   // spec.clientIP says which proxies are believed
	lent      bool                   // of a budget, whose policies have the providers and say whom they trust
	errs      field.ErrorList
	unmet     field.ErrorList // references to budgets that do not count here
}

// invalid notes what is wrong with a field, and the cure. The value is shown where
// one is given.
func (t *translator) invalid(path *field.Path, value any, message string) {
	t.errs = append(t.errs, field.Invalid(path, value, message))
}

// micros reads a duration.
func (t *translator) micros(path *field.Path, d string) limiter.Micros {
	length, err := micros(d)
	if err != nil {
		t.invalid(path, d, err.Error())
	}
	return length
}
