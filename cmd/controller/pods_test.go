package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/objectcache"
)

func TestKnownPods(t *testing.T) {
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "uid"}}
	outage := errors.New("not synced")
	down := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return outage
	}}
	for name, tc := range map[string]struct {
		id    podauth.Identity
		fails interceptor.Funcs
		want  bool
		err   error
	}{
		"the pod":              {id: podauth.Identity{Namespace: "shop", Pod: "web-0", PodUID: "uid"}, want: true},
		"another namespace":    {id: podauth.Identity{Namespace: "other", Pod: "web-0", PodUID: "uid"}},
		"another name":         {id: podauth.Identity{Namespace: "shop", Pod: "web-1", PodUID: "uid"}},
		"the one before":       {id: podauth.Identity{Namespace: "shop", Pod: "web-0", PodUID: "old"}},
		"a cache without word": {id: podauth.Identity{Namespace: "shop", Pod: "web-0", PodUID: "uid"}, fails: down, err: outage},
	} {
		t.Run(name, func(t *testing.T) {
			pods := knownPods{fake.NewClientBuilder().WithObjects(web).WithInterceptorFuncs(tc.fails).Build()}
			if known, err := pods.Knows(t.Context(), tc.id); known != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("known = %t, %v; want %t, %v", known, err, tc.want, tc.err)
			}
		})
	}
}

// TestPodsThatMayEnforce are those whose sidecar runs, may still run, or is about to.
func TestPodsThatMayEnforce(t *testing.T) {
	pods := []client.Object{}
	for name, phase := range map[string]corev1.PodPhase{
		"pending": corev1.PodPending, "running": corev1.PodRunning, "unknown": corev1.PodUnknown, "new": "",
		"succeeded": corev1.PodSucceeded, "failed": corev1.PodFailed,
	} {
		pods = append(pods, labelled("shop", name, phase))
	}
	bare := labelled("shop", "bare", corev1.PodRunning)
	bare.Labels = nil
	pods = append(pods, bare, labelled("other", "elsewhere", corev1.PodRunning))
	known := knownPods{fake.NewClientBuilder().WithObjects(pods...).Build()}
	for namespace, want := range map[string][]string{
		"shop":  {"shop/new", "shop/pending", "shop/running", "shop/unknown"},
		"other": {"other/elsewhere"},
		"":      {"other/elsewhere", "shop/new", "shop/pending", "shop/running", "shop/unknown"},
		"empty": nil,
	} {
		found, err := known.Sidecars(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, id := range found {
			got = append(got, id.Namespace+"/"+id.Pod)
			if want := "uid of " + id.Pod; id.PodUID != want {
				t.Errorf("the UID of %s is %q, want %q", id.Pod, id.PodUID, want)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("sidecars of %q = %v, want %v", namespace, got, want)
		}
	}
}

// TestSidecarsOfACacheWithoutWord: not to know them is not to know that there are none.
func TestSidecarsOfACacheWithoutWord(t *testing.T) {
	outage := errors.New("not synced")
	down := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return outage }}
	if _, err := (knownPods{fake.NewClientBuilder().WithInterceptorFuncs(down).Build()}).Sidecars(t.Context(), ""); !errors.Is(err, outage) {
		t.Errorf("error is %v, want %v", err, outage)
	}
}

// TestReplicasAreFound: not this one, none that ends or has no address, and no other pods.
func TestReplicasAreFound(t *testing.T) {
	pods := []client.Object{}
	add := func(name, address string, change func(*corev1.Pod)) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: name, Labels: objectcache.ControllerLabels},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address},
		}
		change(pod)
		pods = append(pods, pod)
	}
	as := func(*corev1.Pod) {}
	add("this", "10.0.0.1", as)
	add("another", "10.0.0.2", as)
	add("sixth", "fd00::3", as)
	add("without an address", "", as)
	add("ended", "10.0.0.4", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	add("ending", "10.0.0.5", func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"x"} })
	add("elsewhere", "10.0.0.6", func(p *corev1.Pod) { p.Namespace = "shop" })
	add("app", "10.0.0.7", func(p *corev1.Pod) { p.Labels = nil })
	known := knownPods{fake.NewClientBuilder().WithObjects(pods...).Build()}
	o := &options{
		namespace: "weir-system", podName: "this", fleetBindAddress: ":15030",
		fleetAddress: "weir-1:1", fleetReplicas: []string{"weir-0:1", "weir-1:1"},
	}
	got, err := known.Replicas(t.Context(), o)
	want := []string{"weir-0:1", "10.0.0.2:15030", "[fd00::3]:15030"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("replicas = %q, %v; want %q", got, err, want)
	}
	o.podName, o.fleetAddress, o.fleetBindAddress = "", "balancer:1", "weir-1:1"
	if got, err := known.Replicas(t.Context(), o); err != nil || !slices.Equal(got, want[:1]) {
		t.Errorf("outside of a pod: %q, %v; want %q", got, err, want[:1])
	}
}

// labelled returns a pod that has a sidecar.
func labelled(namespace, name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid of " + name),
			Labels: map[string]string{v1alpha1.EnforcerLabel: "true"},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}
