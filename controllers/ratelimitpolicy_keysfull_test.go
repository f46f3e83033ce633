package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
)

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
