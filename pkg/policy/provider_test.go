package policy_test

import (
	"crypto/ed25519"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/weir-dev/weir/pkg/jwt"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// An authority issues tokens.
type authority struct{ key ed25519.PrivateKey }

func newAuthority(t testing.TB) authority {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return authority{key}
}

// provider accepts its tokens for an hour.
func (a authority) provider(t testing.TB) policy.JWTProvider {
	t.Helper()
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: a.key.Public()}}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := jwt.PublicKeys(set)
	if err != nil {
		t.Fatal(err)
	}
	return policy.JWTProvider{Name: "accounts", Issuer: "accounts", Algorithms: []string{"EdDSA"}, ClockSkew: 60 * limiter.Second, Keys: keys}
}

// token makes one that is valid for an hour.
func (a authority) token(t testing.TB, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": "accounts", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	payload, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: a.key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

func bearing(tokens ...string) *policy.Request {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	for _, token := range tokens {
		r.Header.Add("Authorization", "Bearer "+token)
	}
	request := policy.NewRequest(r)
	return &request
}

// subject is the claim sub, verified by the provider.
func subject(provider string) policy.KeyPart {
	return policy.KeyPart{Type: policy.JWTClaimKey, Header: "Authorization", Name: "sub", Provider: provider}
}

func with(provider policy.JWTProvider) func(*policy.Policy) {
	return func(p *policy.Policy) { p.JWTProviders = []policy.JWTProvider{provider} }
}

// TestAClaimThatIsNotVerifiedIsMissing: nobody is charged for what a forged token claims.
func TestAClaimThatIsNotVerifiedIsMissing(t *testing.T) {
	issuer, forger := newAuthority(t), newAuthority(t)
	alice := map[string]any{"sub": "alice"}
	good, forged := issuer.token(t, alice), forger.token(t, alice)
	other := issuer.token(t, map[string]any{"sub": "bob"})
	for name, tc := range map[string]struct {
		request *policy.Request
		value   string // of the key; empty: it is missing
		differs bool
	}{
		"verified":           {bearing(good), "alice", false},
		"forged":             {bearing(forged), "", false},
		"no token":           {bearing(), "", false},
		"no claim":           {bearing(issuer.token(t, nil)), "", false},
		"another issuer":     {bearing(issuer.token(t, map[string]any{"sub": "alice", "iss": "x"})), "", false},
		"two tokens":         {bearing(good, other), "", true},
		"a forged one first": {bearing(forged, good), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			for onMissing, want := range map[policy.OnMissing]policy.Outcome{
				policy.Shared: policy.Counted, policy.Skip: policy.Skipped, policy.Reject: policy.Rejected,
			} {
				value, outcome, _ := limitOf(t, with(issuer.provider(t)), keyed(onMissing, subject("accounts"))).Value(tc.request)
				switch {
				case tc.value != "" && (value != tc.value || outcome != policy.Counted):
					t.Errorf("%s: it is counted as %q, %v; want %q", onMissing, value, outcome, tc.value)
				case tc.differs && onMissing == policy.Skip && outcome != policy.Counted:
					t.Errorf("%s: values that differ escape the limit: %v", onMissing, outcome)
				case tc.value == "" && (value == "alice" || value == "bob" || !tc.differs && outcome != want):
					t.Errorf("%s: it is counted as %q, %v; want %v", onMissing, value, outcome, want)
				}
			}
		})
	}
	if value, _, _ := limitOf(t, with(issuer.provider(t)), keyed(policy.Reject, subject(""))).Value(bearing(forged)); value != "alice" {
		t.Errorf("without a provider the claim is %q, want alice", value)
	}
}

func TestMatchesOfVerifiedClaims(t *testing.T) {
	issuer, forger := newAuthority(t), newAuthority(t)
	gold := map[string]any{"plan": "gold"}
	claim := []policy.Match{{JWTClaims: []policy.ClaimMatch{{Type: policy.Exact, Header: "authorization", Claim: "plan", Value: "gold", Provider: "accounts"}}}}
	selects := limitOf(t, with(issuer.provider(t)), matching(claim...))
	exempts := limitOf(t, with(issuer.provider(t)), func(p *policy.Policy) { p.Limits[0].Exempt = claim })
	for name, tc := range map[string]struct {
		token string
		want  bool
	}{
		"verified": {issuer.token(t, gold), true},
		"forged":   {forger.token(t, gold), false},
		"another":  {issuer.token(t, map[string]any{"plan": "free"}), false},
	} {
		if got := selects.Matches(bearing(tc.token)); got != tc.want {
			t.Errorf("%s: match says %v", name, got)
		}
		if got := exempts.Matches(bearing(tc.token)); got == tc.want {
			t.Errorf("%s: exempt says %v", name, !got)
		}
	}
}

func TestTenantsOfVerifiedClaims(t *testing.T) {
	issuer, forger := newAuthority(t), newAuthority(t)
	l := limitOf(t, with(issuer.provider(t)), func(p *policy.Policy) {
		p.Limits[0].Fairness = &policy.Fairness{Tenant: subject("accounts"), DefaultWeight: 1}
	})
	alice := map[string]any{"sub": "alice"}
	if got, want := l.Tenant(bearing(issuer.token(t, alice))), l.TenantNamed("alice"); got != want {
		t.Errorf("a verified tenant is %s, want %s", got, want)
	}
	if got, want := l.Tenant(bearing(forger.token(t, alice))), l.TenantNamed(""); got != want {
		t.Errorf("a forged tenant is %s, want that of nobody, %s", got, want)
	}
}

// TestEachClaimHasItsOwnVerifier: one header is read by two providers and by none.
func TestEachClaimHasItsOwnVerifier(t *testing.T) {
	issuer, other := newAuthority(t), newAuthority(t)
	l := limitOf(t, func(p *policy.Policy) {
		a, b := issuer.provider(t), other.provider(t)
		b.Name = "others"
		p.JWTProviders = []policy.JWTProvider{a, b}
		of := func(provider string) policy.ClaimMatch {
			return policy.ClaimMatch{Type: policy.Exact, Header: "Authorization", Claim: "sub", Value: "alice", Provider: provider}
		}
		p.Limits[0].Match = []policy.Match{{JWTClaims: []policy.ClaimMatch{of(""), of("others")}}}
	}, keyed(policy.Reject, subject("accounts")))
	token := other.token(t, map[string]any{"sub": "alice"})
	if r := bearing(token); !l.Matches(r) {
		t.Error("a token of the other provider is not verified")
	} else if value, outcome, _ := l.Value(r); outcome != policy.Rejected {
		t.Errorf("a token of the other provider is counted as %q, %v", value, outcome)
	}
}

func TestTokensExpireBetweenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newAuthority(t)
		l := limitOf(t, with(issuer.provider(t)), keyed(policy.Reject, subject("accounts")))
		token := issuer.token(t, map[string]any{"sub": "alice"})
		for _, want := range []policy.Outcome{policy.Counted, policy.Rejected} {
			if _, outcome, _ := l.Value(bearing(token)); outcome != want {
				t.Errorf("the outcome is %v, want %v", outcome, want)
			}
			time.Sleep(time.Hour + time.Minute)
		}
	})
}

func TestKeysAreKept(t *testing.T) {
	at := func(change func(*policy.JWTProvider)) policy.Snapshot {
		s := verified()
		s.Policies[0].JWTProviders = s.Policies[0].JWTProviders[:1]
		change(&s.Policies[0].JWTProviders[0])
		return s
	}
	missing := func(change func(*policy.JWTProvider)) func(*policy.JWTProvider) {
		return func(p *policy.JWTProvider) {
			p.Keys = ""
			change(p)
		}
	}
	for name, tc := range map[string]struct {
		next policy.Snapshot
		want string
	}{
		"of a source that was not read": {at(missing(func(*policy.JWTProvider) {})), publicKey},
		"of another issuer, too":        {at(missing(func(p *policy.JWTProvider) { p.Issuer = "x" })), publicKey},
		"not of another place":          {at(missing(func(p *policy.JWTProvider) { p.URL += "x" })), ""},
		"not of a Secret":               {at(missing(func(p *policy.JWTProvider) { p.URL, p.Secret = "", "shop/a" })), ""},
		"not of another provider":       {at(missing(func(p *policy.JWTProvider) { p.Name = "x" })), ""},
		"not instead of others":         {at(func(p *policy.JWTProvider) { p.Keys = "others" }), "others"},
		"not of the policy itself":      {at(missing(func(p *policy.JWTProvider) { p.URL = "" })), ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := verified()
			tc.next.KeepKeys(&before)
			if got := tc.next.Policies[0].JWTProviders[0].Keys; got != tc.want {
				t.Errorf("the keys are %q, want %q", got, tc.want)
			}
			tc.next.Policies[0].Name = "another"
			tc.next.Policies[0].JWTProviders[0].Keys = ""
			if tc.next.KeepKeys(&before); tc.next.Policies[0].JWTProviders[0].Keys != "" {
				t.Error("another policy takes them over")
			}
		})
	}
}

func TestInvalidProviders(t *testing.T) {
	first := func(change func(*policy.JWTProvider)) func(*policy.Policy) {
		return func(p *policy.Policy) { change(&p.JWTProviders[0]) }
	}
	for name, tc := range map[string]struct {
		change func(*policy.Policy)
		want   string
	}{
		"no name":          {first(func(p *policy.JWTProvider) { p.Name = "" }), `policies[0].jwtProviders[0].name is ""`},
		"a name twice":     {func(p *policy.Policy) { p.JWTProviders[1].Name = "accounts" }, `policies[0].jwtProviders[1].name is "accounts" a second time`},
		"no issuer":        {first(func(p *policy.JWTProvider) { p.Issuer = "" }), "policies[0].jwtProviders[0].issuer is empty"},
		"HS256":            {first(func(p *policy.JWTProvider) { p.Algorithms = []string{"HS256"} }), `policies[0].jwtProviders[0].algorithms has "HS256"`},
		"a great skew":     {first(func(p *policy.JWTProvider) { p.ClockSkew = 301 * limiter.Second }), "clockSkew is 301000000, outside 0 to 300000000"},
		"broken keys":      {first(func(p *policy.JWTProvider) { p.Keys = "{}" }), "policies[0].jwtProviders[0].keys is not a JSON Web Key Set"},
		"two sources":      {first(func(p *policy.JWTProvider) { p.Secret = "shop/a" }), "has a url and a secret"},
		"no source":        {func(p *policy.Policy) { p.JWTProviders[2].Keys = "" }, "policies[0].jwtProviders[2].keys are missing"},
		"no Secret's name": {func(p *policy.Policy) { p.JWTProviders[1].Secret = "a" }, `policies[0].jwtProviders[1].secret is "a"`},
		"a long URL":       {first(func(p *policy.JWTProvider) { p.URL = strings.Repeat("u", 1025) }), "url has 1025 bytes"},
		"many audiences":   {first(func(p *policy.JWTProvider) { p.Audiences = make([]string, 17) }), "audiences has 17 entries"},
		"many providers": {func(p *policy.Policy) {
			for _, name := range []string{"d", "e"} {
				more := p.JWTProviders[2]
				more.Name = name
				p.JWTProviders = append(p.JWTProviders, more)
			}
		}, "jwtProviders has 5 entries"},
		"an unknown one in a match":   {func(p *policy.Policy) { p.Limits[0].Match[0].JWTClaims[0].Provider = "x" }, `policies[0].limits[0].match[0].jwtClaims[0].provider is "x"`},
		"an unknown one in an exempt": {func(p *policy.Policy) { p.Limits[0].Exempt[0].JWTClaims[0].Provider = "x" }, `policies[0].limits[0].exempt[0].jwtClaims[0].provider is "x"`},
		"an unknown one in a key":     {func(p *policy.Policy) { p.Limits[0].Key.Parts[0].Provider = "x" }, `policies[0].limits[0].key.parts[0].provider is "x"`},
		"an unknown one of a tenant":  {func(p *policy.Policy) { p.Limits[0].Fairness.Tenant.Provider = "x" }, `policies[0].limits[0].fairness.tenant.provider is "x"`},
		"a path that is verified": {func(p *policy.Policy) {
			p.Limits[0].Key.Parts[0] = policy.KeyPart{Type: policy.PathKey, Provider: "accounts"}
		}, `policies[0].limits[0].key.parts[0].provider is "accounts", which type Path does not read`},
	} {
		t.Run(name, func(t *testing.T) {
			s := verified()
			tc.change(&s.Policies[0])
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate: %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPoolsHaveNoProviders(t *testing.T) {
	s := pooled(func(p *policy.Pool) {
		p.Exempt = []policy.Match{{JWTClaims: []policy.ClaimMatch{{Type: policy.Present, Header: "Authorization", Claim: "sub", Provider: "accounts"}}}}
	})
	s.Policies = verified().Policies
	want := `pool.exempt[0].jwtClaims[0].provider is "accounts"`
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Validate: %v, want %q", err, want)
	}
}
