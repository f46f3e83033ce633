package controllers

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/jwks"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// verifying has providers a, b and so on, and that is known about each.
func verifying(all ...verification) func(*scope) {
	return func(s *scope) {
		for i, v := range all {
			v.provider.Name = string(rune('a' + i))
			s.verifications = append(s.verifications, v)
		}
	}
}

var (
	fetched = verification{provider: policy.JWTProvider{URL: "u"}, keys: "k"}
	away    = &store.Failure{Why: "its server answers with status 500 instead of 200", Cause: errors.New("what it sent")}
	stale   = verification{provider: policy.JWTProvider{URL: "u"}, keys: "k", err: away}
	without = verification{provider: policy.JWTProvider{URL: "u"}, err: away}
	pending = verification{provider: policy.JWTProvider{URL: "u"}, err: jwks.ErrPending}
	inline  = verification{keys: "k"}
)

func TestKeysCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		all  []verification
		want metav1.Condition
	}{
		"all are known": {[]verification{fetched, inline}, metav1.Condition{
			Status: "True", Reason: "Available", Message: "the keys of every provider are known",
		}},
		"one is being read": {[]verification{pending, fetched}, metav1.Condition{
			Status: "Unknown", Reason: "Starting", Message: "the keys of provider a are being read",
		}},
		"one is old, whatever is being read": {[]verification{pending, stale}, metav1.Condition{
			Status: "False", Reason: "Stale",
			Message: "the keys that were read last are used for provider b (its server answers with status 500 instead of 200); tokens signed with newer ones are refused",
		}},
		"one is missing, whatever is old": {[]verification{stale, without, without}, metav1.Condition{
			Status: "False", Reason: "Unavailable",
			Message: "there are no keys for provider b (its server answers with status 500 instead of 200), provider c (its server answers with status 500 instead of 200); " +
				"pods that were sent keys before go on with them, and in others the claims that name the provider are missing",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Type = v1alpha1.JWTKeysCondition
			got := keysCondition(newScope(verifying(tc.all...)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, c := range conditionsOf(newScope()) {
		if c.Type == v1alpha1.JWTKeysCondition {
			t.Error("a policy without providers has the condition")
		}
	}
}

// TestPodsAreSentOtherKeys as soon as the controller has them.
func TestPodsAreSentOtherKeys(t *testing.T) {
	seen := map[string]string{}
	rotated, second := fetched, inline
	rotated.keys = "other"
	for name, all := range map[string][]verification{"none": nil, "pending": {pending}, "known": {fetched}, "rotated": {rotated}, "two": {fetched, second}} {
		f := fingerprint(newScope(verifying(all...)))
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		seen[f] = name
	}
	if fingerprint(newScope(verifying(fetched))) != fingerprint(newScope(verifying(stale))) {
		t.Error("pods are sent the same keys again")
	}
}

func TestKeysAreLookedAtAgain(t *testing.T) {
	figures := figuresIntervalOf("uid")
	for name, tc := range map[string]struct {
		all  []verification
		want time.Duration
	}{
		"that never change":   {[]verification{inline}, 0},
		"that may change":     {[]verification{inline, fetched}, figures},
		"that are being read": {[]verification{fetched, pending}, pendingAgain},
		"that cannot be read": {[]verification{without}, figures},
		"when there are none": {nil, 0},
		"that are old":        {[]verification{stale}, figures},
		"of a Secret, too":    {[]verification{{provider: policy.JWTProvider{Secret: "shop/a"}}}, figures},
	} {
		if got := newScope(verifying(tc.all...)).again(); got != tc.want {
			t.Errorf("%s: again in %s, want %s", name, got, tc.want)
		}
	}
}

const (
	byMaxKeys = fleetpb.KeysBound_KEYS_BOUND_MAX_KEYS
	byMemory  = fleetpb.KeysBound_KEYS_BOUND_MEMORY
)

func TestKeysFull(t *testing.T) {
	const (
		first   = ": where clients choose the values, put a limit by ClientIP before it; otherwise raise "
		inStore = "there is no room for more values of the key of a, b, so new ones share counters until the longest window is over" + first + "maxKeys or the controller's memory"
		inPods  = "sidecars have no room for more values of the key of "
		one     = "limit a in pod web-1, where maxKeys of them are in use and the others share 12500 counters by a hash of the value"
	)
	inOne := map[string]coordinator.KeysFull{"a": {Pods: 1, Pod: "web-1", Bound: byMaxKeys, Shared: 12_500}}
	for name, tc := range map[string]struct {
		observed coordinator.Observation
		want     metav1.Condition
	}{
		"every value has a counter": {},
		"no room in the store":      {coordinator.Observation{Crowded: []string{"a", "b"}}, condition.True("KeysFull", "NoRoom", inStore)},
		"no room in a sidecar":      {coordinator.Observation{KeysFull: inOne}, condition.True("KeysFull", "NoRoomInPods", inPods+one+first+"maxKeys")},
		"no room in several": {
			coordinator.Observation{KeysFull: map[string]coordinator.KeysFull{
				"a": {Pods: 3, Pod: "web-1", Bound: byMaxKeys, Shared: 2}, "b": {Pods: 2, Pod: "web-2", Bound: byMaxKeys, Shared: 1},
			}},
			condition.True("KeysFull", "NoRoomInPods", inPods+"limit a in 3 pods such as web-1, where maxKeys of them are in use and the others share 2 counters by a hash of the value, "+
				"limit b in 2 pods such as web-2, where maxKeys of them are in use and the others share one counter"+first+"maxKeys"),
		},
		"no memory": {
			coordinator.Observation{KeysFull: map[string]coordinator.KeysFull{
				"a": {Pods: 1, Pod: "web-1", Bound: byMaxKeys, Shared: 12_500}, "b": {Pods: 1, Pod: "web-1", Bound: byMemory, Shared: 12_500},
			}},
			condition.True("KeysFull", "NoRoomInPods", inPods+one+", limit b in pod web-1, where their memory for keys is used up and the others share 12500 counters by a hash of the value"+
				first+"maxKeys and the memory of the sidecars (annotation config.weir.dev/sidecar-memory-limit)"),
		},
		"no room in either": {
			coordinator.Observation{Crowded: []string{"a", "b"}, KeysFull: inOne}, condition.True("KeysFull", "NoRoom", inStore+"; "+inPods+one+first+"maxKeys"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, full := keysFull(tc.observed)
			if diff := cmp.Diff(tc.want, got); diff != "" || full != (got.Status == metav1.ConditionTrue) {
				t.Errorf("full %v (-want +got):\n%s", full, diff)
			}
		})
	}
}

func TestEveryBoundOfKeysIsExplained(t *testing.T) {
	for i, name := range fleetpb.KeysBound_name {
		said := keysBounds[fleetpb.KeysBound(i)]
		if known := said.holds != "" && said.cure != ""; known != (i != 0) {
			t.Errorf("%s: %+v", name, said)
		}
	}
}

func TestEveryFieldOfFullKeysIsShown(t *testing.T) {
	in := &coordinator.KeysFull{Pods: 3, Pod: "web-1", Bound: byMaxKeys, Shared: 4}
	other := &coordinator.KeysFull{Pods: 3, Pod: "web-1", Bound: byMemory, Shared: 4}
	fieldtest.Matter(t, []*coordinator.KeysFull{in, other}, func(k *coordinator.KeysFull) (any, error) {
		return fullInPods(map[string]coordinator.KeysFull{"all": *k}), nil
	})
}
