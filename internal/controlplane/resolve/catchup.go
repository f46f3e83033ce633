package resolve

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	catchUpEvery = 20 * time.Millisecond
	catchUpTime  = 10 * time.Second
)

// CatchUp returns once the cache knows every policy, every pool, every budget and every pod
// with a sidecar as it is at the API server at the time of the call, or as it was later. A process that has just
// begun to lead may see less in its cache than the leader before has written. It would then
// send sidecars back to a store that they have let go of, take shares of a pool for shorter
// than they last, divide a budget that another cluster divides now, or take sidecars for
// gone that are on their local shares. It blocks for at most ten seconds; the error names
// what it waits for.
func CatchUp(ctx context.Context, live, cache client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	return errors.Join(
		catchUp(ctx, live, cache, "policy", &v1alpha1.RateLimitPolicyList{}, &v1alpha1.RateLimitPolicy{}),
		catchUp(ctx, live, cache, "pool", &v1alpha1.ConcurrencyPoolList{}, &v1alpha1.ConcurrencyPool{}),
		catchUp(ctx, live, cache, "budget", &v1alpha1.FederatedBudgetList{}, &v1alpha1.FederatedBudget{}),
		catchUp(ctx, live, cache, "pod", podNames(), &corev1.Pod{}, client.MatchingLabels{v1alpha1.EnforcerLabel: "true"}),
	)
}

// podNames is a list of pods without what is in them.
func podNames() *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
}

// catchUp does so for one kind. It reads into all and known.
func catchUp(ctx context.Context, live, cache client.Reader, kind string, all client.ObjectList, known client.Object, which ...client.ListOption) error {
	if err := live.List(ctx, all, which...); err != nil {
		return fmt.Errorf("listing each %s: %w", kind, err)
	}
	return meta.EachListItem(all, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("a list of each %s holds a %T", kind, item)
		}
		if err := awaitKnown(ctx, live, cache, object, known); err != nil {
			return fmt.Errorf("waiting for the cache to know %s %s: %w", kind, client.ObjectKeyFromObject(object), err)
		}
		return nil
	})
}

// awaitKnown blocks until the cache has the object as it is given, or newer, or knows
// that it is gone. It reads into known.
func awaitKnown(ctx context.Context, live, cache client.Reader, object, known client.Object) error {
	return wait.PollUntilContextCancel(ctx, catchUpEvery, true, func(ctx context.Context) (bool, error) {
		key := client.ObjectKeyFromObject(object)
		err := cache.Get(ctx, key, known)
		if apierrors.IsNotFound(err) { // not yet, or not any more
			err = live.Get(ctx, key, known)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		if err != nil {
			return false, err
		}
		order, err := resourceversion.CompareResourceVersion(known.GetResourceVersion(), object.GetResourceVersion())
		return order >= 0, err
	})
}
