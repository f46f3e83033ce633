package resolve

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	catchUpEvery = 20 * time.Millisecond
	catchUpTime  = 10 * time.Second
)

// CatchUp returns once the cache knows every policy and every pool as it is at the
// API server at the time of the call, or as it was later. A process that has just
// begun to lead may see less in its cache than the leader before has written, and
// would tell sidecars to go back to a store that they have let go of, or take shares
// of a pool for shorter than they last. It blocks for at most ten seconds; the error
// names what it waits for.
func CatchUp(ctx context.Context, live, cache client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	var policies v1alpha1.RateLimitPolicyList
	if err := live.List(ctx, &policies); err != nil {
		return fmt.Errorf("listing the policies: %w", err)
	}
	for i := range policies.Items {
		if err := awaitKnown(ctx, live, cache, &policies.Items[i], &v1alpha1.RateLimitPolicy{}); err != nil {
			return fmt.Errorf("waiting for the cache to know policy %s: %w", client.ObjectKeyFromObject(&policies.Items[i]), err)
		}
	}
	var pools v1alpha1.ConcurrencyPoolList
	if err := live.List(ctx, &pools); err != nil {
		return fmt.Errorf("listing the pools: %w", err)
	}
	for i := range pools.Items {
		if err := awaitKnown(ctx, live, cache, &pools.Items[i], &v1alpha1.ConcurrencyPool{}); err != nil {
			return fmt.Errorf("waiting for the cache to know pool %s: %w", client.ObjectKeyFromObject(&pools.Items[i]), err)
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
