package controllers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/jwks"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// pendingAgain is when keys that are being read are looked at again.
const pendingAgain = time.Second

// verification is what is known of the keys of one provider of tokens.
type verification struct {
	provider policy.JWTProvider
	keys     string // empty while none are known
	err      error  // of the last reading
}

// gatherKeys finds the keys of the policy's providers.
func (r *RateLimitPolicyReconciler) gatherKeys(ctx context.Context, s *scope) {
	for _, p := range s.enforced.JWTProviders {
		v := verification{provider: p}
		v.keys, v.err = r.Keys.Of(ctx, s.policy.Namespace, p)
		s.verifications = append(s.verifications, v)
	}
}

// fingerprint changes with the keys.
func (v verification) fingerprint() string {
	return fmt.Sprintf("/%s=%x", v.provider.Name, sha256.Sum256([]byte(v.keys)))
}

// again is when the keys are to be looked at again, zero when they never change.
func (v verification) again(s *scope) time.Duration {
	switch {
	case errors.Is(v.err, jwks.ErrPending):
		return pendingAgain
	case v.provider.Reads():
		return figuresEvery(s.policy.UID)
	}
	return 0
}

// failure says why keys cannot be read.
func (v verification) failure() string {
	return fmt.Sprintf("provider %s (%s)", v.provider.Name, store.Text(v.err))
}

// keysCondition says whether the tokens of every provider can be verified.
func keysCondition(s *scope) metav1.Condition {
	const kind = v1alpha1.JWTKeysCondition
	var unavailable, stale, pending []string
	for _, v := range s.verifications {
		switch {
		case v.err == nil:
		case errors.Is(v.err, jwks.ErrPending):
			pending = append(pending, "provider "+v.provider.Name)
		case v.keys == "":
			unavailable = append(unavailable, v.failure())
		default:
			stale = append(stale, v.failure())
		}
	}
	switch {
	case len(unavailable) > 0:
		return condition.False(kind, v1alpha1.KeysUnavailableReason,
			"there are no keys for "+nameSome(unavailable)+"; pods that were sent keys before go on with them, and in others the claims that name the provider are missing")
	case len(stale) > 0:
		return condition.False(kind, v1alpha1.KeysStaleReason,
			"the keys that were read last are used for "+nameSome(stale)+"; tokens signed with newer ones are refused")
	case len(pending) > 0:
		return condition.Unknown(kind, v1alpha1.StartingReason, "the keys of "+nameSome(pending)+" are being read")
	}
	return condition.True(kind, v1alpha1.KeysAvailableReason, "the keys of every provider are known")
}
