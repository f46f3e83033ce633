package resolve_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/pkg/store"
)

func ratelimit(namespace, name string, selector map[string]string, limit int64) *v1alpha1.RateLimitPolicy {
	return &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: v1alpha1.RateLimitPolicySpec{
			PodSelector:        metav1.LabelSelector{MatchLabels: selector},
			Mode:               v1alpha1.EnforceMode,
			Limits:             []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: limit, Window: "1s"}}}},
			Consistency:        v1alpha1.Consistency{Mode: v1alpha1.StrictMode},
			Store:              v1alpha1.PolicyStore{Store: v1alpha1.Store{Type: v1alpha1.ControllerStore}},
			OnStoreUnavailable: v1alpha1.OnStoreUnavailable{Action: v1alpha1.LocalShareAction},
		},
	}
}

// pooled returns a pool of namespace shop that was created at that time.
func pooled(name string, created time.Time, selector map[string]string) *v1alpha1.ConcurrencyPool {
	return &v1alpha1.ConcurrencyPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(created)},
		Spec: v1alpha1.ConcurrencyPoolSpec{
			PodSelector:         metav1.LabelSelector{MatchLabels: selector},
			Mode:                v1alpha1.EnforceMode,
			Limit:               v1alpha1.PoolLimit{Max: 100},
			Algorithm:           v1alpha1.PoolAlgorithm{Type: v1alpha1.Gradient2Algorithm},
			Aggregate:           v1alpha1.MedianAggregate,
			Allocation:          v1alpha1.EqualSplitAllocation,
			Handoff:             v1alpha1.AcknowledgedHandoff,
			Heartbeat:           v1alpha1.Heartbeat{Interval: "1s", LeaseTTL: "2s", Eager: v1alpha1.EagerEnabled},
			SelfFence:           v1alpha1.SelfFence{OnFenced: v1alpha1.DrainAction},
			OnCoordinatorOutage: v1alpha1.OnCoordinatorOutage{Action: v1alpha1.FailClosedAction},
			Coordinator:         v1alpha1.Store{Type: v1alpha1.ControllerStore},
			Response:            v1alpha1.PoolResponse{StatusCode: 503},
		},
	}
}

func cache(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// unsynced is a cache that does not answer.
type unsynced struct{ client.Reader }

func (unsynced) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAnAdmissionDoesNotWaitForTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := resolve.ByLabels{Cluster: "c", Cache: unsynced{}}.Snapshot(t.Context(), "shop", nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want a deadline", err)
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("it waited for %s, want 1s", waited)
		}
	})
}

func TestAllLimitsOfACluster(t *testing.T) {
	two := ratelimit("bank", "b", nil, 10)
	two.Spec.Limits = append(two.Spec.Limits, v1alpha1.Limit{Name: "more"})
	got, err := resolve.ByLabels{Cluster: "c", Cache: cache(t, ratelimit("shop", "a", nil, 10), two)}.Limits(t.Context())
	want := map[store.Scope]struct{}{
		{Cluster: "c", Namespace: "shop", Policy: "a", Limit: "all"}:  {},
		{Cluster: "c", Namespace: "bank", Policy: "b", Limit: "all"}:  {},
		{Cluster: "c", Namespace: "bank", Policy: "b", Limit: "more"}: {},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, limits (-want +got):\n%s", err, diff)
	}
}
