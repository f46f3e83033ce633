package controllers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/jwks"
	"github.com/weir-dev/weir/internal/fleetpb"
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
		return figuresIntervalOf(s.policy.UID)
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

// keysFull says that clients are refused with others, and where: in the controller's store, for
// all pods, or in some sidecars. It returns false while every value has a counter of its own.
func keysFull(o coordinator.Observation) (metav1.Condition, bool) {
	const kind = v1alpha1.KeysFullCondition
	switch {
	case len(o.Crowded) > 0 && len(o.KeysFull) > 0:
		return condition.True(kind, v1alpha1.NoRoomReason, fullInStore(o.Crowded)+"; "+fullInPods(o.KeysFull)), true
	case len(o.Crowded) > 0:
		return condition.True(kind, v1alpha1.NoRoomReason, fullInStore(o.Crowded)), true
	case len(o.KeysFull) > 0:
		return condition.True(kind, v1alpha1.NoRoomInPodsReason, fullInPods(o.KeysFull)), true
	}
	return metav1.Condition{}, false
}

func fullInStore(limits []string) string {
	return "there is no room for more values of the key of " + nameSome(limits) + ", so new ones share counters until the longest window is over: " +
		"where clients choose the values, put a limit by ClientIP before it; otherwise raise maxKeys or the controller's memory"
}

func fullInPods(limits map[string]coordinator.KeysFull) string {
	var said []string
	cures := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l := limits[name]
		bound := keysBounds[l.Bound]
		said = append(said, fmt.Sprintf("limit %s in %s, where %s and %s", name, podsLike(l), bound.holds, sharing(l.Shared)))
		cures[bound.cure] = true
	}
	return "sidecars have no room for more values of the key of " + nameSome(said) +
		": where clients choose the values, put a limit by ClientIP before it; otherwise raise " + strings.Join(slices.Sorted(maps.Keys(cures)), " and ")
}

// keysBounds says how each bound holds, and what raises it.
var keysBounds = map[fleetpb.KeysBound]struct{ holds, cure string }{
	fleetpb.KeysBound_KEYS_BOUND_MAX_KEYS: {"maxKeys of them are in use", "maxKeys"},
	fleetpb.KeysBound_KEYS_BOUND_MEMORY:   {"their memory for keys is used up", "the memory of the sidecars (annotation config.weir.dev/sidecar-memory-limit)"},
}

func podsLike(l coordinator.KeysFull) string {
	if l.Pods == 1 {
		return "pod " + l.Pod
	}
	return fmt.Sprintf("%d pods such as %s", l.Pods, l.Pod)
}

// sharing says how the values without counters of their own are counted.
func sharing(counters int64) string {
	if counters == 1 {
		return "the others share one counter"
	}
	return fmt.Sprintf("the others share %d counters by a hash of the value", counters)
}
