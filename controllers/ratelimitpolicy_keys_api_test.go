package controllers_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/jwks"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/policy"
)

// publicSet has the key of RFC 8037, appendix A.
const publicSet = `{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

// fakeKeys are read from the Secrets of the API server each time, and from no URL until a
// test says what is there.
type fakeKeys struct {
	mu    sync.Mutex
	atURL string
}

func (f *fakeKeys) say(keys string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.atURL = keys
}

func (f *fakeKeys) Of(ctx context.Context, namespace string, p policy.JWTProvider) (string, error) {
	read := &resolve.Keys{Secrets: resolve.NewSecrets(server), URL: func(string, string) (string, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.atURL == "" {
			return "", jwks.ErrPending
		}
		return f.atURL, nil
	}}
	return read.Of(ctx, namespace, p)
}

func withKeys(from v1alpha1.JWKS) func(*v1alpha1.RateLimitPolicy) {
	return func(p *v1alpha1.RateLimitPolicy) {
		p.Spec.JWTProviders = []v1alpha1.JWTProvider{{Name: "accounts", Issuer: "accounts", JWKS: from}}
	}
}

func TestKeysOfASecretAreReadAgain(t *testing.T) {
	w := newWorld(t, withKeys(v1alpha1.JWKS{SecretRef: &v1alpha1.SecretReference{Name: "accounts"}}))
	a := w.enforcer("a")
	say := func() { fleet.say(w.policy, acknowledged(w.version(1), a)) }
	w.eventually(v1alpha1.JWTKeysCondition, v1alpha1.KeysUnavailableReason)
	w.Expect(w.condition(v1alpha1.JWTKeysCondition).Message).To(ContainSubstring("there is no secret " + w.policy.Namespace + "/accounts: create it"))
	w.Expect(w.condition(v1alpha1.AcceptedCondition).Reason).To(Equal(v1alpha1.AcceptedReason), "the policy is in force all the same")

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.policy.Namespace, Name: "accounts"},
		Data:       map[string][]byte{"jwks.json": []byte(publicSet)},
	}
	w.Expect(server.Create(t.Context(), secret)).To(Succeed())
	say()
	w.eventually(v1alpha1.JWTKeysCondition, v1alpha1.KeysAvailableReason)

	sent := fleet.refreshes(w.policy.Namespace)
	secret.Data["jwks.json"] = []byte(strings.Replace(publicSet, `"a"`, `"b"`, 1))
	w.Expect(server.Update(t.Context(), secret)).To(Succeed())
	say()
	w.Eventually(func() int { return fleet.refreshes(w.policy.Namespace) }).Should(BeNumerically(">", sent), "pods are sent the new keys")

	secret.Data["jwks.json"] = []byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`)
	w.Expect(server.Update(t.Context(), secret)).To(Succeed())
	say()
	w.eventually(v1alpha1.JWTKeysCondition, v1alpha1.KeysUnavailableReason)
	message := w.condition(v1alpha1.JWTKeysCondition).Message
	w.Expect(message).To(ContainSubstring("is symmetric or private"))
	w.Expect(message).NotTo(ContainSubstring("c2VjcmV0"))
}

// TestKeysAtAURLAreAwaited, without anything else that happens.
func TestKeysAtAURLAreAwaited(t *testing.T) {
	w := newWorld(t, withKeys(v1alpha1.JWKS{URL: "https://accounts.example.com/keys"}))
	w.eventually(v1alpha1.JWTKeysCondition, v1alpha1.StartingReason)
	keys.say(publicSet)
	w.eventually(v1alpha1.JWTKeysCondition, v1alpha1.KeysAvailableReason)
}

// TestSidecarsWithoutRoomForKeysShow in the status and by an Event, until they have room again.
func TestSidecarsWithoutRoomForKeysShow(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	o := acknowledged(w.version(1), a)
	fleet.say(w.policy, o)
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
	w.Expect(meta.FindStatusCondition(w.get().Status.Conditions, v1alpha1.KeysFullCondition)).To(BeNil())

	o.KeysFull = map[string]coordinator.KeysFull{"all": {Pods: 1, Pod: "a", Bound: fleetpb.KeysBound_KEYS_BOUND_MAX_KEYS, Shared: 12}}
	fleet.say(w.policy, o)
	w.eventually(v1alpha1.KeysFullCondition, v1alpha1.NoRoomInPodsReason)
	full := w.condition(v1alpha1.KeysFullCondition)
	w.Expect(full.Status).To(Equal(metav1.ConditionTrue))
	w.Expect(full.Message).To(And(ContainSubstring("limit all in pod a"), ContainSubstring("share 12 counters"), ContainSubstring("raise maxKeys")))
	w.Eventually(func() []string { return w.events("RateLimitPolicy", w.policy.Name) }).Should(ContainElement("Warning NoRoomInPods: " + full.Message))

	o.KeysFull = nil
	fleet.say(w.policy, o)
	w.eventually(v1alpha1.KeysFullCondition, "")
}

// TestALimitThatMatchesNothingShows in the condition Accepted, until it matches something.
func TestALimitThatMatchesNothingShows(t *testing.T) {
	w := newWorld(t)
	o := acknowledged(w.version(1), w.enforcer("a"))
	for _, unmatched := range [][]string{nil, {"all"}, nil} {
		o.Unmatched = unmatched
		elapse(2*time.Second, func() { fleet.say(w.policy, o) })
		w.Eventually(func() string { return w.condition(v1alpha1.AcceptedCondition).Message }).Should(
			WithTransform(func(message string) bool { return strings.Contains(message, "limit all matched none of them") }, Equal(unmatched != nil)))
	}
}
