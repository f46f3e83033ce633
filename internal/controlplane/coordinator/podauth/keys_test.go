package podauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testing/apiserver"
)

const testIssuer = "https://kubernetes.default.svc"

// An issuer publishes keys and signs tokens.
type issuer struct {
	mu    sync.Mutex
	keys  map[string]crypto.Signer // by id
	reads int
	fails error
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	first, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{keys: map[string]crypto.Signer{"first": first}}
}

func (c *issuer) get(_ context.Context, path string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails != nil {
		return nil, c.fails
	}
	if path == discoveryPath {
		return json.Marshal(map[string]string{"issuer": testIssuer})
	}
	c.reads++
	var set jose.JSONWebKeySet
	for id, key := range c.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{KeyID: id, Key: key.Public(), Use: "sig"})
	}
	return json.Marshal(set)
}

// reviewing returns a reviewer that has the cluster's keys and whose API server accepts
// every token, and how often that was asked.
func (c *issuer) reviewing(t *testing.T) (*Reviewer, *int) {
	t.Helper()
	r, asked := reviewing(t, bound(), nil)
	r.keys = NewKeys(c.get, logr.Discard())
	return r, asked
}

// signed returns a token for shop/web-0 that expires in an hour, as change leaves it.
func signed(t testing.TB, key any, algorithm jose.SignatureAlgorithm, id string, change map[string]any) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{
		"iss": testIssuer, "sub": "system:serviceaccount:shop:default", "aud": []string{Audience},
		"exp": now.Add(time.Hour).Unix(), "nbf": now.Unix(),
		"kubernetes.io": map[string]any{"namespace": "shop", "pod": map[string]string{"name": "web-0", "uid": "uid"}},
	}
	maps.Copy(claims, change)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (c *issuer) token(t *testing.T, change map[string]any) string {
	t.Helper()
	return signed(t, c.keys["first"], jose.ES256, "first", change)
}

func TestTokensAreVerifiedByTheKeysOfTheCluster(t *testing.T) {
	c, other, now := newIssuer(t), newIssuer(t), time.Now()
	secret := make([]byte, 64)
	tests := map[string]struct {
		token    string
		reviewed bool // and then accepted
		refused  bool
	}{
		"as the cluster signs it":        {token: c.token(t, nil)},
		"one of several audiences":       {token: c.token(t, map[string]any{"aud": []string{"vault", Audience}})},
		"signed by somebody else":        {token: signed(t, other.keys["first"], jose.ES256, "first", nil), refused: true},
		"a subject of another namespace": {token: c.token(t, map[string]any{"sub": "system:serviceaccount:web:default"}), refused: true},
		"a subject that is a user":       {token: c.token(t, map[string]any{"sub": "system:serviceaccountant:shop:x"}), refused: true},
		"an unknown key":                 {token: signed(t, other.keys["first"], jose.ES256, "second", nil), reviewed: true},
		"a symmetric signature":          {token: signed(t, secret, jose.HS256, "first", nil), reviewed: true},
		"another issuer":                 {token: c.token(t, map[string]any{"iss": "https://old.example"}), reviewed: true},
		"ended by this clock alone":      {token: c.token(t, map[string]any{"exp": now.Add(-clockSkew / 2).Unix()}), reviewed: true},
		"not begun by this clock":        {token: c.token(t, map[string]any{"nbf": now.Add(time.Minute).Unix()}), reviewed: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, asked := c.reviewing(t)
			id, err := r.Authenticate(t.Context(), tc.token)
			if reviewed := *asked == 1; reviewed != tc.reviewed {
				t.Errorf("reviewed = %t, want %t", reviewed, tc.reviewed)
			}
			if errors.Is(err, ErrUnauthenticated) != tc.refused || (err != nil) != tc.refused {
				t.Errorf("error = %v, want one: %t", err, tc.refused)
			}
			if want := (Identity{"shop", "web-0", "uid"}); !tc.refused && id != want {
				t.Errorf("identity = %v, want %v", id, want)
			}
		})
	}
}

// TestTheVerifiedClaimsCount, not those that a more lenient parser reads.
func TestTheVerifiedClaimsCount(t *testing.T) {
	c := newIssuer(t)
	keys := NewKeys(c.get, logr.Discard())
	claim := Identity{"shop", "web-0", "uid"}
	for _, other := range []Identity{{"web", "web-0", "uid"}, {"shop", "web-1", "uid"}, {"shop", "web-0", "other"}} {
		if got := keys.verify(t.Context(), c.token(t, nil), other, time.Now()); got != forged {
			t.Errorf("a token of %v that claims to be of %v: verdict %d", claim, other, got)
		}
	}
	if got := keys.verify(t.Context(), c.token(t, map[string]any{"aud": "vault"}), claim, time.Now()); got != forged {
		t.Errorf("another audience: verdict %d", got)
	}
	if got := keys.verify(t.Context(), c.token(t, nil), claim, time.Now()); got != verified {
		t.Errorf("the token itself: verdict %d", got)
	}
}

func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newIssuer(t)
		r, asked := c.reviewing(t)
		ask := func(token string, reviews int) {
			t.Helper()
			if _, err := r.Authenticate(t.Context(), token); err != nil {
				t.Error(err)
			}
			if *asked != reviews {
				t.Errorf("reviewed %d times, want %d", *asked, reviews)
			}
		}
		ask(c.token(t, nil), 0)
		second, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		c.keys["second"] = second
		next := func(n int) string {
			return signed(t, second, jose.RS256, "second", map[string]any{"jti": fmt.Sprint(n)})
		}
		ask(next(1), 1) // read a moment ago
		time.Sleep(keysPause)
		ask(next(2), 1)
		time.Sleep(keysFreshFor)
		first := c.token(t, nil)
		delete(c.keys, "first")
		ask(first, 2) // the cluster dropped its key
		if c.reads != 3 {
			t.Errorf("the keys were read %d times, want 3", c.reads)
		}
	})
}

func TestKeysThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newIssuer(t)
		r, asked := c.reviewing(t)
		authenticate := func(reviews int) {
			t.Helper()
			if _, err := r.Authenticate(t.Context(), c.token(t, nil)); err != nil {
				t.Error(err)
			}
			if *asked != reviews {
				t.Errorf("reviewed %d times, want %d", *asked, reviews)
			}
		}
		c.fails = errors.New("forbidden")
		authenticate(1)
		c.fails = nil
		authenticate(2) // not tried again yet
		time.Sleep(keysPause)
		authenticate(2)
		c.fails = errors.New("connection refused")
		time.Sleep(keysValidFor - time.Nanosecond)
		authenticate(2) // the keys of before
		time.Sleep(time.Nanosecond)
		authenticate(3)
	})
}

// TestAFleetReconnectsWithoutReviews, and the keys are read once.
func TestAFleetReconnectsWithoutReviews(t *testing.T) {
	c := newIssuer(t)
	r, asked := c.reviewing(t)
	var fleet sync.WaitGroup
	for i := range 500 {
		uid := fmt.Sprint(i)
		token := c.token(t, map[string]any{
			"kubernetes.io": map[string]any{"namespace": "shop", "pod": map[string]string{"name": "web-0", "uid": uid}},
		})
		fleet.Go(func() {
			if id, err := r.Authenticate(t.Context(), token); err != nil || id.PodUID != uid {
				t.Errorf("pod %s: %v, %v", uid, id, err)
			}
		})
	}
	fleet.Wait()
	if *asked != 0 || c.reads != 1 {
		t.Errorf("%d reviews and %d readings of the keys, want 0 and 1", *asked, c.reads)
	}
}

// TestTheKeysOfAnAPIServerVerifyItsTokens, as a kubelet requests them for a pod.
func TestTheKeysOfAnAPIServerVerifyItsTokens(t *testing.T) {
	clients, ctx := apiserver.Clients(t), t.Context()
	core := clients.CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if _, err := core.ServiceAccounts("shop").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := core.Pods("shop").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0"},
		Spec:       corev1.PodSpec{ServiceAccountName: "web", Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := core.ServiceAccounts("shop").CreateToken(ctx, "web", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{Audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	keys := NewKeys(func(ctx context.Context, path string) ([]byte, error) {
		return clients.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	}, testr.New(t))
	claim, err := claimed(request.Status.Token, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if want := (Identity{"shop", "web-0", string(pod.UID)}); claim != want {
		t.Errorf("the token claims %v, want %v", claim, want)
	}
	if got := keys.verify(ctx, request.Status.Token, claim, time.Now()); got != verified {
		t.Errorf("verdict %d", got)
	}
}

func BenchmarkVerify(b *testing.B) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	c := &issuer{keys: map[string]crypto.Signer{"rsa": key}}
	token := signed(b, key, jose.RS256, "rsa", nil)
	keys, claim := NewKeys(c.get, logr.Discard()), Identity{"shop", "web-0", "uid"}
	for b.Loop() {
		if keys.verify(b.Context(), token, claim, time.Now()) != verified {
			b.Fatal("not verified")
		}
	}
}
