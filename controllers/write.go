package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// staleRetry leaves the cache time to catch up with an object.
const staleRetry = 200 * time.Millisecond

// writeStatus writes the status that after has. It reports true when it was computed
// from an object that changed or went meanwhile; then nothing is written.
func writeStatus(ctx context.Context, c client.Client, before, after client.Object) (stale bool, err error) {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	switch err := c.Status().Patch(ctx, after, patch); {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("writing the status: %w", err)
	}
	return false, nil
}
