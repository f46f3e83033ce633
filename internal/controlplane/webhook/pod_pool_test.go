package webhook

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/pkg/policy"
)

// defaultedPool is one as the API server hands it out.
func defaultedPool(name string, selected map[string]string) *v1alpha1.ConcurrencyPool {
	return &v1alpha1.ConcurrencyPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: v1alpha1.ConcurrencyPoolSpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selected},
			Mode:        v1alpha1.EnforceMode,
			Limit:       v1alpha1.PoolLimit{Max: 400},
			Algorithm:   v1alpha1.PoolAlgorithm{Type: v1alpha1.Gradient2Algorithm},
			Aggregate:   v1alpha1.MedianAggregate,
			Allocation:  v1alpha1.EqualSplitAllocation,
			Handoff:     v1alpha1.AcknowledgedHandoff,
			Heartbeat:   v1alpha1.Heartbeat{Interval: "1s", LeaseTTL: "2s", Eager: v1alpha1.EagerEnabled},
			SelfFence:   v1alpha1.SelfFence{OnFenced: v1alpha1.DrainAction},
			Coordinator: v1alpha1.Store{Type: v1alpha1.ControllerStore},
			Response:    v1alpha1.PoolResponse{StatusCode: 503},

			OnCoordinatorOutage: v1alpha1.OnCoordinatorOutage{Action: v1alpha1.FailClosedAction},
		},
	}
}

// A pod that only a pool selects is injected like one that a policy selects, and
// enforces the pool before it hears from the controller.
func TestSidecarCarriesThePoolThatApplies(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		defaultedPool("a-other", map[string]string{"app": "other"}),
		defaultedPool("b-winner", map[string]string{"app": "checkout"}),
		defaultedPool("c-loser", map[string]string{"app": "checkout"}),
	).Build()
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"the first of two pools that select the pod": {labels: map[string]string{"app": "checkout"}, want: "b-winner"},
		"no pool selects the pod":                    {labels: map[string]string{"app": "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			injector, _ := newInjector()
			injector.Snapshots = resolve.ByLabels{Cluster: "test", Cache: cache}
			pod := aPod(nil)
			pod.Labels = tc.labels
			raw := encode(t, pod)
			sidecar := sidecarOf(t, patched(t, raw, injector.Handle(t.Context(), request(raw))))
			data, err := policy.Unpack(env(sidecar, "WEIR_SNAPSHOT"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if (got.Pool == nil) != (tc.want == "") || got.Pool != nil && got.Pool.Name != tc.want {
				t.Errorf("pool = %+v, want %q", got.Pool, tc.want)
			}
		})
	}
}
