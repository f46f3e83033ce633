package jwt_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/jwt"
)

const issuer = "https://accounts.example.com"

var now = time.Unix(1_800_000_000, 0)

// all are the algorithms that there are.
var all = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// provider accepts tokens of the keys with these names.
func provider(t testing.TB, keys ...string) jwt.Provider {
	p := jwt.Provider{Issuer: issuer, Audiences: []string{"shop", "api"}, Algorithms: all, ClockSkew: time.Minute}
	if len(keys) > 0 {
		p.Keys = public(t, keys...)
	}
	return p
}

func verifier(t testing.TB, p jwt.Provider) *jwt.Verifier {
	t.Helper()
	v, err := jwt.NewVerifier(p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// claims are those of a token that is accepted, with some replaced, or removed by nil.
func claims(replaced map[string]any) string {
	payload := map[string]any{"iss": issuer, "aud": "shop", "sub": "alice", "exp": now.Unix() + 600}
	maps.Copy(payload, replaced)
	maps.DeleteFunc(payload, func(_ string, value any) bool { return value == nil })
	return string(must(json.Marshal(payload)))
}

// sign makes a token of the claims.
func sign(t testing.TB, with jose.SigningKey, payload string, headers ...map[jose.HeaderKey]any) string {
	t.Helper()
	var options jose.SignerOptions
	for _, more := range headers {
		for name, value := range more {
			options.WithHeader(name, value)
		}
	}
	signer, err := jose.NewSigner(with, &options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return must(signed.CompactSerialize())
}

func by(name string, a jose.SignatureAlgorithm) jose.SigningKey {
	return jose.SigningKey{Algorithm: a, Key: private(name)}
}

// anonymous signs without naming the key.
func anonymous(name string, a jose.SignatureAlgorithm) jose.SigningKey {
	return jose.SigningKey{Algorithm: a, Key: made[name]()}
}

func part(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestAcceptedTokens(t *testing.T) {
	keys := []string{"rsa", "p256", "p384", "p521", "ed25519"}
	for name, token := range map[string]string{
		"RS256":                   sign(t, by("rsa", jose.RS256), claims(nil)),
		"RS384":                   sign(t, by("rsa", jose.RS384), claims(nil)),
		"RS512":                   sign(t, by("rsa", jose.RS512), claims(nil)),
		"PS256":                   sign(t, by("rsa", jose.PS256), claims(nil)),
		"PS384":                   sign(t, by("rsa", jose.PS384), claims(nil)),
		"PS512":                   sign(t, by("rsa", jose.PS512), claims(nil)),
		"ES256":                   sign(t, by("p256", jose.ES256), claims(nil)),
		"ES384":                   sign(t, by("p384", jose.ES384), claims(nil)),
		"ES512":                   sign(t, by("p521", jose.ES512), claims(nil)),
		"EdDSA":                   sign(t, by("ed25519", jose.EdDSA), claims(nil)),
		"of a key without a name": sign(t, anonymous("p256", jose.ES256), claims(nil)),
		"one audience of several": sign(t, by("p256", jose.ES256), claims(map[string]any{"aud": []string{"other", "api"}})),
		"expired within the skew": sign(t, by("p256", jose.ES256), claims(map[string]any{"exp": now.Unix() - 59})),
		"begun within the skew":   sign(t, by("p256", jose.ES256), claims(map[string]any{"nbf": now.Unix() + 60})),
		"made within the skew":    sign(t, by("p256", jose.ES256), claims(map[string]any{"iat": now.Unix() + 60})),
	} {
		t.Run(name, func(t *testing.T) {
			v := verifier(t, provider(t, keys...))
			for range 2 { // the second time from memory
				got, err := v.Claims(token, now)
				if err != nil || got["sub"] != "alice" {
					t.Errorf("Claims = %v, %v", got, err)
				}
			}
		})
	}
}

func TestRefusedTokens(t *testing.T) {
	good := sign(t, by("p256", jose.ES256), claims(nil))
	parts := strings.Split(good, ".")
	rsaPublic := must(json.Marshal(publicKey("rsa").Key))
	confused := jose.SigningKey{Algorithm: jose.HS256, Key: slices.Concat(rsaPublic, make([]byte, 32))}
	for name, tc := range map[string]struct {
		token, want string
		change      func(*jwt.Provider)
	}{
		"nothing":                        {"", "not a JSON Web Token", nil},
		"two parts":                      {parts[0] + "." + parts[1], "not a JSON Web Token", nil},
		"four parts":                     {good + ".x", "not a JSON Web Token", nil},
		"alg none":                       {part(`{"alg":"none"}`) + "." + parts[1] + ".", "not a JSON Web Token", nil},
		"alg none in capitals":           {part(`{"alg":"None"}`) + "." + parts[1] + "." + parts[2], "not a JSON Web Token", nil},
		"a public key as a secret":       {sign(t, confused, claims(nil)), "not a JSON Web Token", nil},
		"an algorithm not allowed":       {good, "not a JSON Web Token", func(p *jwt.Provider) { p.Algorithms = []string{"RS256"} }},
		"two algorithms":                 {part(`{"alg":"ES256","alg":"RS256"}`) + "." + parts[1] + "." + parts[2], "not a JSON Web Token", nil},
		"a header that is critical":      {sign(t, by("p256", jose.ES256), claims(nil), map[jose.HeaderKey]any{"crit": []string{"x"}, "x": 1}), "its signature", nil},
		"a key that it brings itself":    {sign(t, anonymous("other", jose.RS256), claims(nil), map[jose.HeaderKey]any{"jwk": publicKey("other")}), "its signature", nil},
		"a key that nobody has":          {sign(t, by("p384", jose.ES384), claims(nil)), "no key of the provider", nil},
		"no keys":                        {good, "no key of the provider", func(p *jwt.Provider) { p.Keys = "" }},
		"another key of that name":       {sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: made["other"](), KeyID: "rsa"}}, claims(nil)), "its signature", nil},
		"other claims":                   {parts[0] + "." + part(claims(map[string]any{"sub": "bob"})) + "." + parts[2], "its signature", nil},
		"no signature":                   {parts[0] + "." + parts[1] + ".", "its signature", nil},
		"another issuer":                 {sign(t, by("p256", jose.ES256), claims(map[string]any{"iss": issuer + "/"})), "not for this provider", nil},
		"no issuer":                      {sign(t, by("p256", jose.ES256), claims(map[string]any{"iss": nil})), "not for this provider", nil},
		"another audience":               {sign(t, by("p256", jose.ES256), claims(map[string]any{"aud": "other"})), "not for this provider", nil},
		"no audience":                    {sign(t, by("p256", jose.ES256), claims(map[string]any{"aud": nil})), "not for this provider", nil},
		"expired":                        {sign(t, by("p256", jose.ES256), claims(map[string]any{"exp": now.Unix() - 60})), "expired", nil},
		"no expiry":                      {sign(t, by("p256", jose.ES256), claims(map[string]any{"exp": nil})), "no claim exp", nil},
		"not yet valid":                  {sign(t, by("p256", jose.ES256), claims(map[string]any{"nbf": now.Unix() + 61})), "not valid yet", nil},
		"made later":                     {sign(t, by("p256", jose.ES256), claims(map[string]any{"iat": now.Unix() + 61})), "not valid yet", nil},
		"an expiry that is not a number": {sign(t, by("p256", jose.ES256), claims(map[string]any{"exp": "soon"})), "its claims", nil},
		"a claim twice":                  {sign(t, by("p256", jose.ES256), strings.Replace(claims(nil), `{`, `{"sub":"bob",`, 1)), "its claims", nil},
		"a nested claim twice":           {sign(t, by("p256", jose.ES256), strings.Replace(claims(nil), `{`, `{"org":{"id":1,"id":2},`, 1)), "its claims", nil},
		"a claim twice, escaped":         {sign(t, by("p256", jose.ES256), strings.Replace(claims(nil), `{`, `{"s\u0075b":"bob",`, 1)), "its claims", nil},
		"a list":                         {sign(t, by("p256", jose.ES256), `["iss"]`), "its claims", nil},
		"null":                           {sign(t, by("p256", jose.ES256), `null`), "its claims", nil},
		"two values":                     {sign(t, by("p256", jose.ES256), claims(nil)+claims(nil)), "its claims", nil},
		"many bytes":                     {sign(t, by("p256", jose.ES256), claims(map[string]any{"pad": strings.Repeat("x", jwt.MaxToken)})), "at most 8192 are read", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := provider(t, "rsa", "p256")
			if tc.change != nil {
				tc.change(&p)
			}
			v := verifier(t, p)
			for range 2 {
				got, err := v.Claims(tc.token, now)
				if err == nil || got != nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("Claims = %v, %v; want an error with %q", got, err, tc.want)
				}
			}
		})
	}
}

// TestAKeyIsForItsAlgorithm: an RSA key that says RS256 verifies no PS256.
func TestAKeyIsForItsAlgorithm(t *testing.T) {
	key := publicKey("rsa")
	key.Algorithm = "RS256"
	p := provider(t)
	p.Keys = must(jwt.PublicKeys(set(key)))
	v := verifier(t, p)
	if _, err := v.Claims(sign(t, by("rsa", jose.RS256), claims(nil)), now); err != nil {
		t.Error(err)
	}
	if _, err := v.Claims(sign(t, by("rsa", jose.PS256), claims(nil)), now); err == nil {
		t.Error("a token of another algorithm than its key's is accepted")
	}
}

// TestTokensWithoutAKeyTryFew: the fifth key that would fit is not tried.
func TestTokensWithoutAKeyTryFew(t *testing.T) {
	var keys []jose.JSONWebKey
	for _, id := range []string{"a", "b", "c", "d"} {
		keys = append(keys, jose.JSONWebKey{Key: publicKey("other").Key, KeyID: id})
	}
	of := func(keys ...jose.JSONWebKey) *jwt.Verifier {
		p := provider(t)
		p.Keys = must(jwt.PublicKeys(set(keys...)))
		return verifier(t, p)
	}
	token := sign(t, anonymous("rsa", jose.RS256), claims(nil))
	if _, err := of(append(slices.Clone(keys[:3]), publicKey("rsa"))...).Claims(token, now); err != nil {
		t.Errorf("with the fourth of four keys: %v", err)
	}
	if _, err := of(append(keys, publicKey("rsa"))...).Claims(token, now); err == nil {
		t.Error("five keys were tried")
	}
}

// TestANamedKeyIsTheOneThatVerifies: no other is tried for it, wherever it is in the set.
func TestANamedKeyIsTheOneThatVerifies(t *testing.T) {
	var keys []jose.JSONWebKey
	for _, id := range []string{"a", "b", "c", "d"} {
		keys = append(keys, jose.JSONWebKey{Key: publicKey("other").Key, KeyID: id})
	}
	p := provider(t)
	p.Keys = must(jwt.PublicKeys(set(append(keys, publicKey("rsa"))...)))
	v := verifier(t, p)
	if _, err := v.Claims(sign(t, by("rsa", jose.RS256), claims(nil)), now); err != nil {
		t.Errorf("the fifth key, which is named: %v", err)
	}
	withdrawn := jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: made["rsa"](), KeyID: "withdrawn"}}
	if _, err := v.Claims(sign(t, withdrawn, claims(nil)), now); err == nil || !strings.Contains(err.Error(), "no key of the provider") {
		t.Errorf("a key that is named and is not there: %v", err)
	}
}

func TestATokenIsJudgedByTheTimeOfEachRequest(t *testing.T) {
	v := verifier(t, provider(t, "p256"))
	token := sign(t, by("p256", jose.ES256), claims(map[string]any{"nbf": now.Unix() - 10}))
	for _, at := range []struct {
		after time.Duration
		valid bool
	}{{0, true}, {659 * time.Second, true}, {660 * time.Second, false}, {-70 * time.Second, true}, {-71 * time.Second, false}, {0, true}} {
		if got, err := v.Claims(token, now.Add(at.after)); (err == nil) != at.valid || (got != nil) != at.valid {
			t.Errorf("after %s Claims = %v, %v", at.after, got, err)
		}
	}
}

func TestRotation(t *testing.T) {
	before, after := sign(t, by("p256", jose.ES256), claims(nil)), sign(t, by("rsa", jose.RS256), claims(nil))
	for name, tc := range map[string]struct {
		keys          []string
		before, after bool
	}{
		"the old key": {[]string{"p256"}, true, false},
		"both":        {[]string{"p256", "rsa"}, true, true},
		"the new key": {[]string{"rsa"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := verifier(t, provider(t, tc.keys...))
			_, errBefore := v.Claims(before, now)
			_, errAfter := v.Claims(after, now)
			if (errBefore == nil) != tc.before || (errAfter == nil) != tc.after {
				t.Errorf("the old token: %v; the new one: %v", errBefore, errAfter)
			}
		})
	}
}

func TestNumbersStayAsTheyAreWritten(t *testing.T) {
	v := verifier(t, provider(t, "p256"))
	got, err := v.Claims(sign(t, by("p256", jose.ES256), strings.Replace(claims(nil), `{`, `{"id":12345678901234567890,`, 1)), now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(json.Number("12345678901234567890")), got["id"]); diff != "" {
		t.Error(diff)
	}
}

func TestAnyAudience(t *testing.T) {
	p := provider(t, "p256")
	p.Audiences = nil
	if _, err := verifier(t, p).Claims(sign(t, by("p256", jose.ES256), claims(map[string]any{"aud": nil})), now); err != nil {
		t.Error(err)
	}
}

func TestRefusedProviders(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*jwt.Provider)
		want   string
	}{
		"no issuer":        {func(p *jwt.Provider) { p.Issuer = "" }, "issuer is empty"},
		"no algorithm":     {func(p *jwt.Provider) { p.Algorithms = nil }, "algorithms is empty"},
		"none":             {func(p *jwt.Provider) { p.Algorithms = []string{"none"} }, `algorithms has "none"`},
		"a secret":         {func(p *jwt.Provider) { p.Algorithms = []string{"RS256", "HS256"} }, `algorithms has "HS256"`},
		"a negative skew":  {func(p *jwt.Provider) { p.ClockSkew = -1 }, "clockSkew is -1ns"},
		"no set":           {func(p *jwt.Provider) { p.Keys = "x" }, "keys is not a JSON Web Key Set"},
		"a private key":    {func(p *jwt.Provider) { p.Keys = string(set(private("p256"))) }, "keys keys[0] is symmetric or private"},
		"another spelling": {func(p *jwt.Provider) { p.Keys += " " }, "canonical form"},
	} {
		t.Run(name, func(t *testing.T) {
			p := provider(t, "p256")
			tc.change(&p)
			if _, err := jwt.NewVerifier(p); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("NewVerifier: %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzClaims: nobody without a key has claims of his own accepted.
func FuzzClaims(f *testing.F) {
	p := provider(f, "p256", "ed25519")
	signed := sign(f, by("p256", jose.ES256), claims(nil))
	f.Add(signed)
	f.Add(sign(f, anonymous("ed25519", jose.EdDSA), claims(map[string]any{"aud": []string{"api"}})))
	f.Add(part(`{"alg":"none"}`) + "." + part(claims(nil)) + ".")
	f.Add(part(`{"alg":"ES256","crit":["b64"],"b64":false}`) + ".x.x")
	want, err := verifier(f, p).Claims(signed, now)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		got, err := verifier(t, p).Claims(token, now)
		if err == nil && got["sub"] != want["sub"] {
			t.Fatalf("%q is accepted with claims %v", token, got)
		}
		if (err == nil) == (got == nil) {
			t.Fatalf("Claims = %v, %v", got, err)
		}
	})
}

func BenchmarkClaims(b *testing.B) {
	p := provider(b, "rsa")
	token := sign(b, by("rsa", jose.RS256), claims(map[string]any{"pad": strings.Repeat("x", 500)}))
	b.Run("remembered", func(b *testing.B) {
		v := verifier(b, p)
		for b.Loop() {
			if _, err := v.Claims(token, now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			v := verifier(b, p)
			b.StartTimer()
			if _, err := v.Claims(token, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
