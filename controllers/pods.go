package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

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
	var p pods
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
