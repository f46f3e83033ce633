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

// writeStatus writes the status that after has, and leaves in after the object as the API
// server has it then. It reports true when the status was computed from an object that
// changed or went meanwhile; then nothing is written.
func writeStatus[T any, O interface {
	*T
	client.Object
}](ctx context.Context, c client.Client, before, after O) (stale bool, err error) {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(after)
	if err != nil {
		return false, fmt.Errorf("comparing the status with the one before: %w", err)
	}
	// An answer read into after would leave there what the API server dropped.
	answer := O(new(T))
	answer.SetNamespace(after.GetNamespace())
	answer.SetName(after.GetName())
	switch err := c.Status().Patch(ctx, answer, client.RawPatch(patch.Type(), data)); {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("writing the status: %w", err)
	}
	*after = *answer
	return false, nil
}
