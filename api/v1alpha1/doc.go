// Package v1alpha1 is the API of Weir, group weir.dev: the kinds that users
// write, the conditions they read, and the labels and annotations that steer
// injection. It holds no behaviour.
//
// +kubebuilder:object:generate=true
// +groupName=weir.dev
package v1alpha1
