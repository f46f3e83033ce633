package main

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weir-dev/weir/internal/coordinator"
)

func TestKnownPods(t *testing.T) {
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "uid"}}
	outage := errors.New("not synced")
	down := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return outage
	}}
	for name, tc := range map[string]struct {
		id    coordinator.Identity
		fails interceptor.Funcs
		want  bool
		err   error
	}{
		"the pod":              {id: coordinator.Identity{Namespace: "shop", Pod: "web-0", PodUID: "uid"}, want: true},
		"another namespace":    {id: coordinator.Identity{Namespace: "other", Pod: "web-0", PodUID: "uid"}},
		"another name":         {id: coordinator.Identity{Namespace: "shop", Pod: "web-1", PodUID: "uid"}},
		"the one before":       {id: coordinator.Identity{Namespace: "shop", Pod: "web-0", PodUID: "old"}},
		"a cache without word": {id: coordinator.Identity{Namespace: "shop", Pod: "web-0", PodUID: "uid"}, fails: down, err: outage},
	} {
		t.Run(name, func(t *testing.T) {
			pods := knownPods{fake.NewClientBuilder().WithObjects(web).WithInterceptorFuncs(tc.fails).Build()}
			if known, err := pods.Knows(t.Context(), tc.id); known != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("known = %t, %v; want %t, %v", known, err, tc.want, tc.err)
			}
		})
	}
}
