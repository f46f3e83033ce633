package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/fleetpb"
)

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
