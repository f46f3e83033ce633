package policy_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

func TestAClaimIsReadFromItsHeader(t *testing.T) {
	l := limitOf(t, matching(policy.Match{JWTClaims: []policy.ClaimMatch{
		{Type: policy.Exact, Header: "authorization", Claim: "a", Value: "1"},
		{Type: policy.Exact, Header: "x-token", Claim: "a", Value: "2"},
	}}))
	one, two := tokenOf(`{"a":1}`), tokenOf(`{"a":2}`)
	if !l.Matches(view(calling("GET", "/", "Authorization", "Bearer "+one, "X-Token", two))) {
		t.Error("the claims of two tokens do not match")
	}
	if l.Matches(view(calling("GET", "/", "Authorization", "Bearer "+one, "X-Token", one))) {
		t.Error("the claims of one token match for another")
	}
}

// FuzzToken checks that no token, however it is written, breaks a limit, and that one
// that claims something claims what was put into it.
func FuzzToken(f *testing.F) {
	f.Add("Bearer "+tokenOf(`{"sub":"a"}`), "alice")
	f.Add("Bearer a.b.c", `"`)
	f.Add(strings.Repeat(".", 9000), "\x00")
	f.Add("Bearer "+tokenOf(strings.Repeat(`{"a":`, 1500)), "")
	f.Fuzz(func(t *testing.T, field, subject string) {
		l := limitOf(t, matching(policy.Match{
			JWTClaims:  []policy.ClaimMatch{{Type: policy.Present, Header: "authorization", Claim: "a.b"}},
			Expression: "has(request.jwt.sub) && request.jwt.sub == 'a'",
		}), keyed(policy.Skip, policy.KeyPart{Type: policy.JWTClaimKey, Header: "authorization", Name: "sub"}))
		r := view(calling("GET", "/", "Authorization", field))
		l.Matches(r)
		l.Value(r)
		if subject == "" || len(subject) > 100 || strings.ToValidUTF8(subject, "") != subject {
			return
		}
		claims, err := jsonOf(map[string]string{"sub": subject})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := l.Value(view(calling("GET", "/", "Authorization", "Bearer "+tokenOf(claims)))); got != subject {
			t.Errorf("%q claims %q", subject, got)
		}
	})
}
