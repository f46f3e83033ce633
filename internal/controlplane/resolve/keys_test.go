package resolve_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/pkg/policy"
)

// keySet is a set as sidecars are sent it: with the key of RFC 8037, appendix A.
const keySet = `{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

func secretOf(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

// known are keys from everywhere.
func known(t *testing.T) *resolve.Keys {
	t.Helper()
	return &resolve.Keys{
		Secrets: resolve.NewSecrets(cache(t,
			secretOf("good", "jwks.json", " "+keySet),
			secretOf("other", "keys.json", keySet),
			secretOf("private", "jwks.json", `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`),
		)),
		URL: func(namespace, url string) (string, error) {
			if namespace == "shop" && url == "https://stale.example.com" {
				return keySet, errors.New("it is away")
			}
			return "of " + namespace + " " + url, nil
		},
	}
}

func TestKeysOfProviders(t *testing.T) {
	for name, tc := range map[string]struct {
		provider   policy.JWTProvider
		want, fail string
	}{
		"part of the policy":         {policy.JWTProvider{Keys: keySet}, keySet, ""},
		"at a URL":                   {policy.JWTProvider{URL: "https://a"}, "of shop https://a", ""},
		"at a URL that is away":      {policy.JWTProvider{URL: "https://stale.example.com"}, keySet, "it is away"},
		"in a Secret":                {policy.JWTProvider{Secret: "shop/good"}, keySet, ""},
		"in another key":             {policy.JWTProvider{Secret: "shop/other"}, "", "secret shop/other has no key jwks.json: store"},
		"in no Secret":               {policy.JWTProvider{Secret: "shop/none"}, "", "there is no secret shop/none"},
		"symmetric, in a Secret":     {policy.JWTProvider{Secret: "shop/private"}, "", "jwks.json of secret shop/private keys[0] is symmetric or private"},
		"of a Secret, not of before": {policy.JWTProvider{Secret: "shop/none", Keys: keySet}, "", "there is no secret shop/none"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := known(t).Of(t.Context(), "shop", tc.provider)
			if got != tc.want || (err != nil) != (tc.fail != "") {
				t.Fatalf("Of = %q, %v; want %q, %q", got, err, tc.want, tc.fail)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.fail) || strings.Contains(err.Error(), "c2VjcmV0")) {
				t.Errorf("the error says %q, want %q and nothing of the Secret", err, tc.fail)
			}
		})
	}
}

// TestPodsAreSentKeys, as far as they can be had.
func TestPodsAreSentKeys(t *testing.T) {
	p := ratelimit("shop", "a", nil, 10)
	for _, name := range []string{"good", "none"} {
		p.Spec.JWTProviders = append(p.Spec.JWTProviders, v1alpha1.JWTProvider{
			Name: name, Issuer: "i", Algorithms: []v1alpha1.JWTAlgorithm{"EdDSA"}, ClockSkew: "1m",
			JWKS: v1alpha1.JWKS{SecretRef: &v1alpha1.SecretReference{Name: name}},
		})
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "uid"}}
	all, keys := cache(t, p, pod), known(t)
	of, err := resolve.ByPod{ByLabels: resolve.ByLabels{Cluster: "c", Cache: all}, Secrets: keys.Secrets, Keys: keys}.Namespace(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := of(t.Context(), "web-0", "uid")
	if err != nil {
		t.Fatal(err)
	}
	if sent := snapshot.Policies[0].JWTProviders; len(sent) != 2 || sent[0].Keys != keySet || sent[1].Keys != "" {
		t.Errorf("the pod is sent %+v", sent)
	}
	injected, err := resolve.ByLabels{Cluster: "c", Cache: all}.Snapshot(t.Context(), "shop", nil)
	if err != nil || injected.Policies[0].JWTProviders[0].Keys != "" {
		t.Errorf("a pod is created with %+v, %v", injected.Policies, err)
	}
}
