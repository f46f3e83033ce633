package translate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
)

// doubts returns what works and may yet not be what was meant.
func doubts(p *v1alpha1.RateLimitPolicy, translated policy.Policy) []string {
	spec := field.NewPath("spec")
	warnings := slices.Concat(clientIPDoubts(spec, p, translated.Limits), jwtDoubts(spec.Child("jwtProviders"), &translated), namelessUser(spec, p), openToken(spec, p), unusedResume(spec, p, &translated))
	if translated.Consistency.Mode == policy.Leased {
		warnings = append(warnings, leaseDoubts(spec.Child("consistency", "lease"), p, &translated)...)
	}
	for i := range translated.Limits {
		l := limitDoubts{path: spec.Child("limits").Index(i), spec: &p.Spec.Limits[i], policy: &translated, limit: &translated.Limits[i]}
		warnings = append(warnings, l.all()...)
	}
	return warnings
}

func warn(path *field.Path, format string, args ...any) string {
	return path.String() + ": " + fmt.Sprintf(format, args...)
}

// clientIPDoubts are about proxies that are trusted for nothing, and addresses that may be those of
// proxies.
func clientIPDoubts(spec *field.Path, p *v1alpha1.RateLimitPolicy, limits []policy.Limit) []string {
	used, trusts := slices.ContainsFunc(p.Spec.Limits, usesClientIP) || slices.ContainsFunc(limits, drawsByClient), p.Spec.ClientIP != nil
	switch {
	case trusts && !used:
		return []string{warn(spec.Child("clientIP"), "no limit has a key part of type ClientIP or PeerIdentity, sourceCIDRs or an expression over request.clientIP, so this has no effect: add one or remove clientIP")}
	case used && !trusts:
		return []string{warn(spec.Child("clientIP"), "limits read the client's address, and no proxy is trusted: behind a gateway or load balancer they read its address, the same for all clients. Set trustedHops or trustedCIDRs, unless clients connect to the pods themselves")}
	default:
		return nil
	}
}

func namelessUser(spec *field.Path, p *v1alpha1.RateLimitPolicy) []string {
	if p.Spec.Store.Postgres == nil || p.Spec.Store.Postgres.SecretRef != nil {
		return nil
	}
	return []string{warn(spec.Child("store", "postgres", "secretRef"), "Postgres has no user without a name, so the store is out of reach: name a Secret with the keys username and password")}
}

func openToken(spec *field.Path, p *v1alpha1.RateLimitPolicy) []string {
	if p.Spec.Store.Redis == nil || p.Spec.Store.Redis.REST == nil || !strings.HasPrefix(p.Spec.Store.Redis.REST.URL, "http:") {
		return nil
	}
	return []string{warn(spec.Child("store", "redis", "rest", "url"), "anyone in between can read the token that is sent without encryption, and the controller connects only where an administrator has allowed that: write https")}
}

func unusedResume(spec *field.Path, p *v1alpha1.RateLimitPolicy, translated *policy.Policy) []string {
	at := spec.Child("store", "onMemoryLoss")
	durable := slices.ContainsFunc(translated.Limits, func(l policy.Limit) bool { return l.Retention.Durable })
	switch {
	case p.Spec.Store.OnMemoryLoss != v1alpha1.ResumeOnMemoryLoss:
		return nil
	case p.Spec.Store.Type == v1alpha1.ControllerStore || p.Spec.Store.Type == "":
		return []string{warn(at, "the controller always waits, so this has no effect: remove it, and end a wait with the annotation %s; or set type to Redis or Postgres", v1alpha1.ResetAnnotation)}
	case durable:
		return nil
	}
	return []string{warn(at, "no limit has a window longer than 1m, so no counter outlives a restart and this has no effect: set memory to Durable, or remove it")}
}

func usesClientIP(l v1alpha1.Limit) bool {
	return l.Key != nil && slices.ContainsFunc(l.Key.Parts, isOfClient) ||
		l.Fairness != nil && isOfClient(l.Fairness.Tenant) ||
		slices.ContainsFunc(l.Match, selectsClients) || slices.ContainsFunc(l.Exempt, selectsClients)
}

// drawsByClient reports whether the budget that a limit draws from has a key by the client.
func drawsByClient(l policy.Limit) bool {
	return l.Budget != nil && l.Key != nil && slices.ContainsFunc(l.Key.Parts, func(p policy.KeyPart) bool {
		return p.Type == policy.ClientIPKey || p.Type == policy.PeerIdentityKey || strings.Contains(p.Expression, "clientIP")
	})
}

func isOfClient(p v1alpha1.KeyPart) bool {
	return p.Type == v1alpha1.ClientIPPart || p.Type == v1alpha1.PeerIdentityPart || strings.Contains(p.Expression, "clientIP")
}

func selectsClients(m v1alpha1.Match) bool {
	return len(m.SourceCIDRs) > 0 || strings.Contains(m.Expression, "clientIP")
}

// limitDoubts are about one limit.
type limitDoubts struct {
	path   *field.Path
	spec   *v1alpha1.Limit
	policy *policy.Policy
	limit  *policy.Limit
}

func (d limitDoubts) all() []string {
	return slices.Concat(
		d.mode(),
		encodedPaths(d.path.Child("match"), d.limit.Match),
		halfExempt(d.path.Child("exempt"), d.limit.Exempt),
		d.unleased(),
		d.ownRates(),
		d.wait(),
		d.costs(),
		d.lonelyTenants(),
		d.overrides(),
	)
}

// ownRates are about the rates that the policy names; those of a budget are its own
// matter.
func (d limitDoubts) ownRates() []string {
	if d.limit.Budget != nil {
		return nil
	}
	return d.rates(d.path.Child("rates"), d.spec.Rates, d.limit.Rates)
}

// overrides are about the rates of single values that the policy names.
func (d limitDoubts) overrides() (warnings []string) {
	for i, o := range d.spec.Overrides {
		warnings = append(warnings, d.rates(d.path.Child("overrides").Index(i).Child("rates"), o.Rates, d.limit.Overrides[i].Rates)...)
	}
	return warnings
}

func (d limitDoubts) mode() []string {
	if d.policy.Mode != policy.Shadow || d.limit.Mode != policy.Enforce {
		return nil
	}
	return []string{warn(d.path.Child("mode"), "spec.mode is Shadow, so nothing is refused here either: set spec.mode to Enforce and the mode of the other limits to Shadow")}
}

// wait warns of a queue in which nobody can wait.
func (d limitDoubts) wait() []string {
	if d.limit.Algorithm != policy.LeakyBucket || d.limit.AtOnce(d.limit.Rates) > 1 {
		return nil
	}
	return []string{warn(d.path.Child("maxDelay"), "the next turn comes later than %s, so nobody ever waits: raise it to at least window / limit", d.spec.MaxDelay)}
}

func (d limitDoubts) costs() []string {
	c := d.limit.Cost
	if c == nil {
		return nil
	}
	var warnings []string
	if most := d.limit.AtOnce(d.limit.Rates); c.Max > most {
		warnings = append(warnings, warn(d.path.Child("cost", "max"),
			"a request that costs more than %d is always refused, because the limit never admits more at once: lower it, or raise the limit", most))
	}
	if !d.limit.Settled() {
		warnings = append(warnings, warn(d.path.Child("cost", "responseHeader"),
			"a response may cost more than was reserved, and nothing bounds by how much the limit is exceeded then: set default to max (%d) without requestHeader to be exact", c.Max))
	}
	return warnings
}

// lonelyTenants warns of counters that only one tenant ever uses.
func (d limitDoubts) lonelyTenants() []string {
	if d.limit.Fairness == nil || d.limit.Key == nil || !slices.ContainsFunc(d.limit.Key.Parts, d.isTenant) {
		return nil
	}
	return []string{warn(d.path.Child("fairness", "tenant"), "it is part of the key, so every tenant has a counter of its own and there is nothing to split: remove it from the key, or remove fairness")}
}

func (d limitDoubts) isTenant(p policy.KeyPart) bool {
	tenant := d.limit.Fairness.Tenant
	return p.Type == tenant.Type && strings.EqualFold(p.Header, tenant.Header)
}
