package controllers_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/fleetpb"
)

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
