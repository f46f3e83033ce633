//go:build fleet

package fleet

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// An issuer signs tokens with one key.
type issuer struct{ key jose.JSONWebKey }

func newIssuer(id string) issuer {
	GinkgoHelper()
	_, key, err := ed25519.GenerateKey(nil)
	Expect(err).NotTo(HaveOccurred())
	return issuer{jose.JSONWebKey{Key: key, KeyID: id}}
}

// set returns the public keys of issuers as a Secret holds them.
func set(issuers ...issuer) map[string][]byte {
	GinkgoHelper()
	var keys jose.JSONWebKeySet
	for _, i := range issuers {
		keys.Keys = append(keys.Keys, i.key.Public())
	}
	text, err := json.Marshal(keys)
	Expect(err).NotTo(HaveOccurred())
	return map[string][]byte{"jwks.json": text}
}

func (i issuer) token(subject string) string {
	GinkgoHelper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: i.key}, nil)
	Expect(err).NotTo(HaveOccurred())
	claims, err := json.Marshal(map[string]any{"iss": "accounts", "aud": "shop", "sub": subject, "exp": time.Now().Add(time.Hour).Unix()})
	Expect(err).NotTo(HaveOccurred())
	signed, err := signer.Sign(claims)
	Expect(err).NotTo(HaveOccurred())
	token, err := signed.CompactSerialize()
	Expect(err).NotTo(HaveOccurred())
	return token
}

// bear returns the status of the answer to a request with a token.
func bear(ctx context.Context, address, token string) int {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/orders", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	return resp.StatusCode
}

var _ = Describe("Verified claims", func() {
	It("are counted by subject, and follow a rotation of the keys in a Secret", func(ctx SpecContext) {
		first, second, forger := newIssuer("1"), newIssuer("2"), newIssuer("1")
		shop := openShop(ctx, func(s *v1alpha1.RateLimitPolicySpec) {
			s.Consistency = v1alpha1.Consistency{Mode: v1alpha1.StrictMode}
			s.JWTProviders = []v1alpha1.JWTProvider{{
				Name: "accounts", Issuer: "accounts", Audiences: []string{"shop"},
				JWKS: v1alpha1.JWKS{SecretRef: &v1alpha1.SecretReference{Name: "accounts"}},
			}}
			l := &s.Limits[0]
			l.Match = []v1alpha1.Match{{Paths: []v1alpha1.PathMatch{{Value: "/orders"}}}}
			l.Rates = []v1alpha1.Rate{{Limit: 2, Window: "1h"}}
			l.Key = &v1alpha1.Key{OnMissing: v1alpha1.OnMissingReject, Parts: []v1alpha1.KeyPart{{
				Type: v1alpha1.JWTClaimPart, JWTClaim: &v1alpha1.JWTClaimKey{Claim: "sub", Verification: v1alpha1.Verified, Provider: "accounts"},
			}}}
		})
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "accounts", Namespace: shop.namespace}, Data: set(first)}
		Expect(shop.kube.Create(ctx, secret)).To(Succeed())
		shop.letRead(ctx, secret.Name)
		shop.deploy(ctx, "checkout", 1, nil)
		address := shop.endpoints(ctx)[0].Proxy
		Eventually(func() int { return bear(ctx, address, first.token(time.Now().String())) }, longest, time.Second).Should(Equal(http.StatusOK))

		alice := first.token("alice")
		Expect(bear(ctx, address, alice)).To(Equal(http.StatusOK))
		for range 3 {
			Expect(bear(ctx, address, forger.token("alice"))).To(Equal(http.StatusBadRequest), "a forged token")
		}
		Expect(bear(ctx, address, first.token("alice"))).To(Equal(http.StatusOK), "another token of one subject, which forged ones did not charge")
		Expect(bear(ctx, address, alice)).To(Equal(http.StatusTooManyRequests))
		Expect(bear(ctx, address, first.token("bob"))).To(Equal(http.StatusOK))
		Expect(bear(ctx, address, second.token("carol"))).To(Equal(http.StatusBadRequest), "a key that is not published yet")

		secret.Data = set(second)
		Expect(shop.kube.Update(ctx, secret)).To(Succeed())
		Eventually(func() int { return bear(ctx, address, second.token("carol")) }, longest, time.Second).Should(Equal(http.StatusOK))
		Expect(bear(ctx, address, first.token("dave"))).To(Equal(http.StatusBadRequest), "a key that is withdrawn")
		Expect(bear(ctx, address, alice)).To(Equal(http.StatusBadRequest), "a token that was accepted before")
	}, SpecTimeout(3*time.Minute))
})
