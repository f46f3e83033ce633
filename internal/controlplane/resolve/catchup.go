package resolve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	kinds := []struct {
		name  string
		of    schema.GroupVersionKind
		which client.MatchingLabels
		known client.Object
	}{
		{name: "policy", of: v1alpha1.GroupVersion.WithKind("RateLimitPolicy"), known: &v1alpha1.RateLimitPolicy{}},
		{name: "pool", of: v1alpha1.GroupVersion.WithKind("ConcurrencyPool"), known: &v1alpha1.ConcurrencyPool{}},
		{name: "budget", of: v1alpha1.GroupVersion.WithKind("FederatedBudget"), known: &v1alpha1.FederatedBudget{}},
		{name: "pod", of: corev1.SchemeGroupVersion.WithKind("Pod"), which: client.MatchingLabels{v1alpha1.EnforcerLabel: "true"}, known: &corev1.Pod{}},
	}
	errs := make([]error, len(kinds))
	var all sync.WaitGroup
	for i, k := range kinds {
		all.Go(func() { errs[i] = catchUp(ctx, live, cache, k.name, k.of, k.which, k.known) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// catchUp does so for one kind. It reads into known. Of thousands of objects only the metadata is read from
// the API server: nobody is granted anything meanwhile.
func catchUp(
	ctx context.Context, live, cache client.Reader, name string, of schema.GroupVersionKind, which client.MatchingLabels, known client.Object,
) error {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
	if err := live.List(ctx, &all, which); err != nil {
		return fmt.Errorf("listing each %s: %w", name, err)
	}
	for i := range all.Items {
		if err := awaitKnown(ctx, live, cache, &all.Items[i], known); err != nil {
			return fmt.Errorf("waiting for the cache to know %s %s: %w", name, client.ObjectKeyFromObject(&all.Items[i]), err)
		}
	}
	return nil
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
