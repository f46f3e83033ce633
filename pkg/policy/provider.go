package policy

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/jwt"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A JWTProvider verifies the tokens of one issuer, for the claims that name it.
type JWTProvider struct {
	Name       string         `json:"name"`
	Issuer     string         `json:"issuer"`
	Audiences  []string       `json:"audiences,omitempty"` // tokens name one of them; none: any
	Algorithms []string       `json:"algorithms"`          // at least one, as of jwt.Provider
	ClockSkew  limiter.Micros `json:"clockSkew,omitempty"`

	// URL or Secret, "namespace/name", is where the controller reads the keys. Without
	// either they are part of the policy.
	URL    string `json:"url,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Keys verify the tokens, as jwt.PublicKeys returns them. Where there are none no token
	// is verified: the claims that name the provider are missing.
	Keys string `json:"keys,omitempty"`
}

// Reads reports whether the keys are read from elsewhere.
func (p *JWTProvider) Reads() bool { return p.URL != "" || p.Secret != "" }

// verifier returns what verifies the tokens of the provider.
func (p *JWTProvider) verifier() (*jwt.Verifier, error) {
	return jwt.NewVerifier(jwt.Provider{
		Issuer: p.Issuer, Audiences: p.Audiences, Algorithms: p.Algorithms, ClockSkew: time.Duration(p.ClockSkew) * time.Microsecond, Keys: p.Keys,
	})
}

// verifiers are those of a policy, by the names of their providers. Under the empty name is
// nil, which verifies nothing.
type verifiers map[string]*jwt.Verifier

func compileProviders(providers []JWTProvider) (verifiers, error) {
	all := make(verifiers, len(providers))
	for i := range providers {
		v, err := providers[i].verifier()
		if err != nil {
			return nil, fmt.Errorf("%s.%w", entry("jwtProviders", i), err)
		}
		all[providers[i].Name] = v
	}
	return all, nil
}

// KeepKeys fills in the keys that s lacks because the controller has not read them, as
// before has them: of the same provider of the same policy, from the same place.
func (s *Snapshot) KeepKeys(before *Snapshot) {
	for i := range s.Policies {
		p := &s.Policies[i]
		at, found := slices.BinarySearchFunc(before.Policies, *p, func(a, b Policy) int { return a.compare(&b) })
		if !found {
			continue
		}
		for j := range p.JWTProviders {
			p.JWTProviders[j].keep(before.Policies[at].JWTProviders)
		}
	}
}

func (p *JWTProvider) keep(before []JWTProvider) {
	if p.Keys != "" {
		return
	}
	for _, old := range before {
		if old.Name == p.Name && old.URL == p.URL && old.Secret == p.Secret {
			p.Keys = old.Keys
		}
	}
}

func (p *Policy) validateProviders(errs *problems, path string) {
	errs.count(path, len(p.JWTProviders), 0, MaxProviders)
	for i := range p.JWTProviders {
		provider, at := &p.JWTProviders[i], path+entry("", i)
		provider.validate(errs, at)
		if slices.ContainsFunc(p.JWTProviders[:i], func(o JWTProvider) bool { return o.Name == provider.Name }) {
			errs.add(at+".name", "is %q a second time: rename one of them", provider.Name)
		}
	}
}

func (p *JWTProvider) validate(errs *problems, path string) {
	errs.name(path+".name", p.Name, labelName)
	errs.count(path+".audiences", len(p.Audiences), 0, MaxMatches)
	errs.within(path+".clockSkew", int64(p.ClockSkew), 0, int64(maxClockSkew))
	if _, err := p.verifier(); err != nil {
		*errs = append(*errs, fmt.Errorf("%s.%w", path, err))
	}
	switch {
	case p.URL != "" && p.Secret != "":
		errs.add(path, "has a url and a secret: keep one")
	case !p.Reads() && p.Keys == "":
		errs.add(path+".keys", "are missing, and there is neither a url nor a secret to read them from")
	case p.Secret != "" && !isSecretName(p.Secret):
		errs.add(path+".secret", "is %q: write namespace/name", p.Secret)
	}
	errs.text(path+".url", p.URL, 0)
}

// Verifies reports whether a claim that the limit reads names the provider.
func (l *Limit) Verifies(provider string) bool {
	for _, name := range l.claims("") {
		if name == provider {
			return true
		}
	}
	return false
}

// claims yields each claim that the limit reads by its path: the provider that it names,
// empty for none.
func (l *Limit) claims(path string) iter.Seq2[string, string] {
	return func(yield func(at, provider string) bool) {
		for _, claims := range []iter.Seq2[string, string]{
			claimsOf(path+".match", l.Match), claimsOf(path+".exempt", l.Exempt), l.Key.claims(path + ".key.parts"),
		} {
			for at, provider := range claims {
				if !yield(at, provider) {
					return
				}
			}
		}
		if l.Fairness != nil {
			yield(path+".fairness.tenant", l.Fairness.Tenant.Provider)
		}
	}
}

// claims yields the parts of a key, which may be nil.
func (k *Key) claims(path string) iter.Seq2[string, string] {
	return func(yield func(at, provider string) bool) {
		if k == nil {
			return
		}
		for i, part := range k.Parts {
			if !yield(path+entry("", i), part.Provider) {
				return
			}
		}
	}
}

func claimsOf(path string, ms []Match) iter.Seq2[string, string] {
	return func(yield func(at, provider string) bool) {
		for i := range ms {
			for j, claim := range ms[i].JWTClaims {
				if !yield(path+entry("", i)+entry(".jwtClaims", j), claim.Provider) {
					return
				}
			}
		}
	}
}

// providers checks that claims name what is known.
func (p *problems) providers(claims iter.Seq2[string, string], known []JWTProvider) {
	for at, name := range claims {
		if name != "" && !slices.ContainsFunc(known, func(o JWTProvider) bool { return o.Name == name }) {
			p.add(at+".provider", "is %q, which none of the policy's jwtProviders is called", name)
		}
	}
}
