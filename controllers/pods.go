package controllers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/internal/controlplane/selection"
)

// pods are the selected pods, each list by name.
type pods struct {
	enforcers  []enforcer // carry a sidecar and are not finished
	leaving    []enforcer // carry a sidecar, run, and are on their way out
	uninjected []string   // run without a sidecar
	exposed    []string   // run with one, and are reached past it by the host port that is named
}

// enforcer is a pod that carries a sidecar.
type enforcer struct {
	name    string
	uid     types.UID
	running bool // its app is, so there may be requests to let through
}

// selectPods sorts selected pods into those that enforce and those that run past
// that. Pods that are finished are neither.
func selectPods(selected []*corev1.Pod) pods {
	p := pods{enforcers: make([]enforcer, 0, len(selected))} // mostly all of them
	for _, pod := range selected {
		switch {
		case pod.DeletionTimestamp != nil && pod.Status.Phase == corev1.PodRunning && selection.HasSidecar(pod):
			p.leaving = append(p.leaving, enforcer{pod.Name, pod.UID, true})
		case selection.Finished(pod):
		case selection.HasSidecar(pod):
			p.enforcers = append(p.enforcers, enforcer{pod.Name, pod.UID, pod.Status.Phase == corev1.PodRunning})
			if port := selection.PastSidecar(pod); port != 0 && pod.Status.Phase == corev1.PodRunning {
				p.exposed = append(p.exposed, fmt.Sprintf("%s (host port %d)", pod.Name, port))
			}
		case pod.Status.Phase == corev1.PodRunning:
			p.uninjected = append(p.uninjected, pod.Name)
		}
	}
	slices.SortFunc(p.enforcers, func(a, b enforcer) int { return cmp.Compare(a.name, b.name) })
	slices.Sort(p.uninjected)
	slices.Sort(p.exposed)
	return p
}

// listPods returns the pods of the namespace that are selected, from the cache, which
// shares them: they are only read. A client's list has a copy of each, of a KiB, also where
// it makes no deep copies, and each reconciliation lists thousands.
func listPods(ctx context.Context, from cache.Informers, namespace string, selecting *metav1.LabelSelector) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(selecting)
	if err != nil {
		return nil, fmt.Errorf("spec.podSelector: %w", err)
	}
	informer, err := from.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("listing the selected pods: %w", err)
	}
	indexed, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("listing the selected pods: their informer is a %T, which has no index", informer)
	}
	selected, err := corelisters.NewPodLister(indexed.GetIndexer()).Pods(namespace).List(selector)
	if err != nil {
		return nil, fmt.Errorf("listing the selected pods: %w", err)
	}
	return selected, nil
}

// podMatters passes the updates of a pod that change which objects select it or whether
// it enforces: labels, phase, and the start of its deletion.
func podMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, ok2 := e.ObjectNew.(*corev1.Pod)
		return !ok || !ok2 ||
			!maps.Equal(before.Labels, after.Labels) ||
			before.Status.Phase != after.Status.Phase ||
			selection.Finished(before) != selection.Finished(after)
	}}
}

// podsInterval is how long an object waits after a pod that it selects has changed. To
// reconcile it takes looking at all pods that it selects, and the pods of a workload
// change together.
const podsInterval = 200 * time.Millisecond

// onPods queues what changes of pods concern, once for those of podsInterval.
func onPods(concerned handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	h := handler.EnqueueRequestsFromMapFunc(concerned)
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { h.Create(ctx, e, later(q)) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { h.Update(ctx, e, later(q)) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { h.Delete(ctx, e, later(q)) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { h.Generic(ctx, e, later(q)) },
	}
}

// later returns a queue by which what is added to q waits for podsInterval.
func later(q workqueue.TypedRateLimitingInterface[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	//nolint:forcetypeassert // the queue of every controller is one
	return laterQueue{q.(priorityqueue.PriorityQueue[reconcile.Request])}
}

type laterQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
}

// Add implements [workqueue.TypedInterface].
func (q laterQueue) Add(r reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

// AddWithOpts implements [priorityqueue.PriorityQueue].
func (q laterQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	o.After = podsInterval
	q.PriorityQueue.AddWithOpts(o, requests...)
}
