package controllers

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// podMatters passes the updates of a pod that change which objects select it or whether
// it enforces: labels, phase, and the start of its deletion.
func podMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, ok2 := e.ObjectNew.(*corev1.Pod)
		return !ok || !ok2 ||
			!maps.Equal(before.Labels, after.Labels) ||
			before.Status.Phase != after.Status.Phase ||
			finished(before) != finished(after)
	}}
}
