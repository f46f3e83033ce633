package translate

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/jwt"
	"github.com/weir-dev/weir/pkg/policy"
)

// jwtProviders returns those of a policy, with the keys that are part of it. Others have to
// be read.
func (t *translator) jwtProviders(path *field.Path, p *v1alpha1.RateLimitPolicy) []policy.JWTProvider {
	var out []policy.JWTProvider
	for i, of := range p.Spec.JWTProviders {
		at := path.Index(i)
		provider := policy.JWTProvider{
			Name: of.Name, Issuer: of.Issuer, Audiences: of.Audiences, Algorithms: texts(of.Algorithms),
			ClockSkew: t.micros(at.Child("clockSkew"), string(of.ClockSkew)),
			Secret:    secret(p.Namespace, of.JWKS.SecretRef),
		}
		if of.JWKS.URL != "" {
			provider.URL = t.keysURL(at.Child("jwks", "url"), p.Namespace, of.JWKS.URL)
		}
		if of.JWKS.Inline != "" {
			provider.Keys = t.keys(at.Child("jwks", "inline"), of.JWKS.Inline)
		}
		out = append(out, provider)
	}
	return out
}

// keysURL returns a URL that means one server in every namespace.
func (t *translator) keysURL(path *field.Path, namespace, text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		t.invalid(path, text, "not the URL of a key set: write https, a host and a path, such as https://accounts.example.com/.well-known/jwks.json")
		return ""
	}
	return completeURL(namespace, text)
}

// keys returns the public keys of a set that is part of the policy.
func (t *translator) keys(path *field.Path, set string) string {
	keys, err := jwt.PublicKeys([]byte(set))
	if err != nil {
		t.invalid(path, field.OmitValueType{}, "the set "+err.Error())
	}
	return keys
}

// provider returns the provider that verifies a claim, empty when nothing does. The path is
// that of the claim.
func (t *translator) provider(path *field.Path, v v1alpha1.Verification, name string) string {
	if v != v1alpha1.Verified {
		return ""
	}
	if !t.lent && !t.provides(name) {
		t.invalid(path.Child("provider"), name, "is the name of no entry of spec.jwtProviders, which a RateLimitPolicy may have and a ConcurrencyPool has not: add it there, or set verification to Unverified")
	}
	return name
}

func (t *translator) provides(name string) bool {
	return slices.ContainsFunc(t.providers, func(p v1alpha1.JWTProvider) bool { return p.Name == name })
}

// jwtDoubts warn of providers that do not do what they are for.
func jwtDoubts(path *field.Path, p *policy.Policy) []string {
	var warnings []string
	for i := range p.JWTProviders {
		provider, at := &p.JWTProviders[i], path.Index(i)
		if !slices.ContainsFunc(p.Limits, func(l policy.Limit) bool { return l.Verifies(provider.Name) }) {
			warnings = append(warnings, warn(at.Child("name"), "no claim names it, so it verifies nothing: set verification to Verified and provider to %s where a limit reads a claim, or remove it", provider.Name))
		}
		if strings.HasPrefix(provider.URL, "http:") {
			warnings = append(warnings, warn(at.Child("jwks", "url"), "anyone in between can replace keys that are read without encryption, and the controller connects only where an administrator has allowed that: write https"))
		}
	}
	return warnings
}
