// Package objectcache says what the controller keeps in memory of the objects that it watches.
package objectcache

import (
	"reflect"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/selection"
)

// Options returns options that trim objects. Every pod of the cluster is cached, so a
// pod keeps only the fields that package controllers and internal/controlplane/resolve read, and the addresses
// of controllers. Other objects lose the fields that only their authors and the API server
// read. A cached object must not be sent to the API server whole.
func Options() cache.Options {
	return cache.Options{
		ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: TrimPod}},
		DefaultTransform: trim,
	}
}

// trim drops the fields of an object that are not read here, and compacts the rest.
func trim(obj any) (any, error) {
	object, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	object.SetManagedFields(nil)
	if annotations := object.GetAnnotations(); annotations != nil {
		delete(annotations, corev1.LastAppliedConfigAnnotation) // as large as the object
	}
	compact(reflect.ValueOf(object).Elem())
	return obj, nil
}

// compact has equal strings share their bytes, and slices end behind their last element:
// of thousands of objects most strings are alike, and a decoder leaves room for more
// elements.
func compact(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(unique.Make(v.String()).Value())
	case reflect.Pointer:
		if !v.IsNil() {
			compact(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && !isName(v.Type(), i) {
				compact(f)
			}
		}
	case reflect.Slice:
		if v.Cap() > v.Len() {
			exact := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(exact, v)
			v.Set(exact)
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			compact(v.Index(i))
		}
	case reflect.Map:
		compactMap(v)
	default: // nothing shared, and no room
	}
}

// compactMap compacts labels and the like.
func compactMap(v reflect.Value) {
	m, ok := reflect.TypeAssert[map[string]string](v)
	if !ok || m == nil {
		return
	}
	exact := make(map[string]string, len(m))
	for key, value := range m {
		exact[unique.Make(key).Value()] = unique.Make(value).Value()
	}
	v.Set(reflect.ValueOf(exact))
}

// isName reports whether a field is one of an object's metadata that no other object has
// the same of, so that to look for an equal one is in vain.
func isName(of reflect.Type, field int) bool {
	if of != reflect.TypeFor[metav1.ObjectMeta]() {
		return false
	}
	switch of.Field(field).Name {
	case "Name", "UID", "ResourceVersion":
		return true
	}
	return false
}

// ControllerLabels are those of the controllers' pods.
var ControllerLabels = client.MatchingLabels{"app.kubernetes.io/name": "weir", "app.kubernetes.io/component": "controller"}

// TrimPod drops the fields of a pod that are not read.
func TrimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         pod.Namespace,
			Name:              pod.Name,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			Labels:            pod.Labels,
			DeletionTimestamp: pod.DeletionTimestamp,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if labels.SelectorFromSet(labels.Set(ControllerLabels)).Matches(labels.Set(pod.Labels)) {
		trimmed.Status.PodIP = pod.Status.PodIP
	}
	if selection.PastSidecar(pod) != 0 {
		trimmed.Annotations = map[string]string{v1alpha1.InjectedAnnotation: pod.Annotations[v1alpha1.InjectedAnnotation]}
		trimmed.Spec.Containers, trimmed.Spec.InitContainers = portsOf(pod.Spec.Containers), portsOf(pod.Spec.InitContainers)
	}
	compact(reflect.ValueOf(trimmed).Elem())
	return trimmed, nil
}

// portsOf returns what of containers says which ports they serve.
func portsOf(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range containers {
		out = append(out, corev1.Container{Name: c.Name, Ports: c.Ports})
	}
	return out
}
