package resolve_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/resolve"
	"github.com/weir-dev/weir/internal/translate"
	"github.com/weir-dev/weir/pkg/policy"
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

func names(s policy.Snapshot) []string {
	var names []string
	for _, p := range s.Policies {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

func TestByPod(t *testing.T) {
	app := map[string]string{"app": "checkout"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-0", UID: "uid-0", Labels: app}}
	objects := []client.Object{
		pod,
		ratelimit("shop", "b", app, 10),
		ratelimit("shop", "a", nil, 10),
		ratelimit("shop", "other", map[string]string{"app": "other"}, 10),
		ratelimit("bank", "c", app, 10),
	}
	tests := map[string]struct {
		pod, uid string
		more     []client.Object
		want     []string
		refused  func(error) bool // nil: there is no error
	}{
		"the policies of the namespace that select the pod": {
			pod: "checkout-0", uid: "uid-0", want: []string{"shop/a", "shop/b"},
		},
		"a pod the cache does not know yet gets nothing, rather than no policy": {
			pod: "checkout-1", uid: "uid-1", refused: apierrors.IsNotFound,
		},
		"a name that was used again is not the pod that asks": {
			pod: "checkout-0", uid: "uid-before",
			refused: func(err error) bool { return errors.As(err, new(*resolve.OtherPodError)) },
		},
		"a policy that cannot be translated is told of beside the rest": {
			pod: "checkout-0", uid: "uid-0", more: []client.Object{ratelimit("shop", "broken", app, 0)},
			want:    []string{"shop/a", "shop/b"},
			refused: func(err error) bool { return errors.As(err, new(*translate.PartialError)) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			resolver := resolve.ByPod{ByLabels: resolve.ByLabels{Cluster: "c", Cache: cache(t, append(tc.more, objects...)...)}}
			snapshot, err := resolver.Snapshot(t.Context(), "shop", tc.pod, tc.uid)
			if tc.refused == nil && err != nil || tc.refused != nil && !tc.refused(err) {
				t.Errorf("error is %v, which is not what is wanted", err)
			}
			if diff := cmp.Diff(tc.want, names(snapshot)); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
			if tc.want != nil && snapshot.Cluster != "c" {
				t.Errorf("counters are named after cluster %q, want c", snapshot.Cluster)
			}
		})
	}
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
