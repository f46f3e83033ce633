package leadership

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The label of the leading replica's pod.
const (
	LabelKey   = "weir.dev/leader"
	LabelValue = "true"
)

// deletionCost is above that of the other replicas, which have none.
const deletionCost = "1"

const (
	retryPeriod = time.Second
	// clearTimeout bounds what a stopping leader spends on taking its label off:
	// the next leader takes it off as well.
	clearTimeout = 2 * time.Second
)

// A Labeler marks one pod while its process leads. It is a manager.Runnable that
// needs leader election.
//
// Beside the label it gives the pod a deletion cost, so that a rollout removes the other
// replicas before it. Each change of leaders costs a hand-over; else the first to go would
// often be the leader, and its successor the next.
type Labeler struct {
	Writer client.Writer
	Reader client.Reader // uncached: a label is looked up once in a leader's life
	Pod    types.NamespacedName
}

// NeedLeaderElection reports that only the leader runs a Labeler.
func (*Labeler) NeedLeaderElection() bool { return true }

// Start labels the pod, and takes the label off every other pod of its namespace that a
// crashed leader left it on. When ctx is done, it takes the label off its own. It retries
// until it succeeds, since sidecars cannot find the leader before.
func (l *Labeler) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, retryPeriod, true, func(ctx context.Context) (bool, error) {
		if err := l.take(ctx); err != nil {
			log.FromContext(ctx).Error(err, "cannot label the leading pod; trying again")
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return nil // stopped before the label was on: nothing to take off
	}
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
	defer cancel()
	return l.Clear(ctx)
}

// Clear takes the label off the pod. A process calls it before it competes for
// leadership: its container may have crashed while it led.
func (l *Labeler) Clear(ctx context.Context) error {
	return l.mark(ctx, l.Pod, false)
}

func (l *Labeler) take(ctx context.Context) error {
	labelled := metav1.PartialObjectMetadataList{}
	labelled.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := l.Reader.List(ctx, &labelled, client.InNamespace(l.Pod.Namespace), client.MatchingLabels{LabelKey: LabelValue}); err != nil {
		return fmt.Errorf("listing pods labelled %s: %w", LabelKey, err)
	}
	var errs []error
	for _, pod := range labelled.Items {
		if pod.Name != l.Pod.Name {
			errs = append(errs, client.IgnoreNotFound(l.mark(ctx, client.ObjectKeyFromObject(&pod), false)))
		}
	}
	return errors.Join(append(errs, l.mark(ctx, l.Pod, true))...)
}

// mark says whether the pod leads; null removes a key.
func (l *Labeler) mark(ctx context.Context, name types.NamespacedName, leads bool) error {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	label, cost := "null", "null"
	if leads {
		label, cost = strconv.Quote(LabelValue), strconv.Quote(deletionCost)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s},"annotations":{%q:%s}}}`, LabelKey, label, corev1.PodDeletionCost, cost)
	if err := l.Writer.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("patching label %s of pod %s: %w", LabelKey, name, err)
	}
	return nil
}
