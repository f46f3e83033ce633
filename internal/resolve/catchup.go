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

// CatchUp returns once the cache knows every policy as it is at the API server at
// the time of the call, or as it was later. A process that has just begun to lead
// may see less in its cache than the leader before has written, and would tell
// sidecars to go back to a store that they have let go of. It blocks for at most
// ten seconds; the error names the policy that it waits for.
func CatchUp(ctx context.Context, live, cache client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	var now v1alpha1.RateLimitPolicyList
	if err := live.List(ctx, &now); err != nil {
		return fmt.Errorf("listing the policies: %w", err)
	}
	for i := range now.Items {
		err := wait.PollUntilContextCancel(ctx, catchUpEvery, true, func(ctx context.Context) (bool, error) {
			return knows(ctx, live, cache, &now.Items[i])
		})
		if err != nil {
			return fmt.Errorf("waiting for the cache to know policy %s: %w", client.ObjectKeyFromObject(&now.Items[i]), err)
		}
	}
	return nil
}

// knows reports whether the cache has the policy as it is given, or newer, or knows
// that it is gone.
func knows(ctx context.Context, live, cache client.Reader, p *v1alpha1.RateLimitPolicy) (bool, error) {
	key := client.ObjectKeyFromObject(p)
	var known v1alpha1.RateLimitPolicy
	err := cache.Get(ctx, key, &known)
	if apierrors.IsNotFound(err) { // not yet, or not any more
		err = live.Get(ctx, key, &known)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if err != nil {
		return false, err
	}
	order, err := resourceversion.CompareResourceVersion(known.ResourceVersion, p.ResourceVersion)
	return order >= 0, err
}
