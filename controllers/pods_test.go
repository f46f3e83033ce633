package controllers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/objectcache"
)

func TestSelectPods(t *testing.T) {
	sidecar := map[string]string{v1alpha1.EnforcerLabel: "true"}
	pod := func(name string, labels map[string]string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "x", Labels: labels},
			Status:     corev1.PodStatus{Phase: phase},
		}
	}
	leaving := pod("leaving", sidecar, corev1.PodRunning)
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	exposed := pod("exposed", sidecar, corev1.PodRunning)
	exposed.Annotations = map[string]string{v1alpha1.InjectedAnnotation: `{"capture":"port","ports":[{"name":"http","listen":15006,"app":8080}]}`}
	exposed.Spec.Containers = []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 80}}}}
	exposed.Spec.InitContainers = []corev1.Container{{Name: "weir", Image: "weir", Ports: []corev1.ContainerPort{{ContainerPort: 15006}}}}
	exposed.Namespace, exposed.ResourceVersion, exposed.DeletionTimestamp = "shop", "7", &metav1.Time{Time: now}
	exposed.Annotations["other"], exposed.Spec.NodeName = "x", "node"
	trimmed, err := objectcache.TrimPod(exposed)
	if err != nil {
		t.Fatal(err)
	}
	kept := exposed.DeepCopy()
	delete(kept.Annotations, "other")
	kept.Spec.NodeName, kept.Spec.Containers[0].Image, kept.Spec.InitContainers[0].Image = "", "", ""
	if diff := cmp.Diff(kept, trimmed); diff != "" {
		t.Errorf("TrimPod keeps (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"controller": "10.0.0.1", "app": ""} {
		p := pod(name, map[string]string{"app.kubernetes.io/name": "weir", "app.kubernetes.io/component": name}, corev1.PodRunning)
		p.Status.PodIP = "10.0.0.1"
		if kept, err := objectcache.TrimPod(p); err != nil || kept.(*corev1.Pod).Status.PodIP != want {
			t.Errorf("TrimPod keeps of %s: %+v, %v; want the address %q", name, kept, err, want)
		}
	}
	trimmed.(*corev1.Pod).DeletionTimestamp, exposed.DeletionTimestamp = nil, nil
	starting := exposed.DeepCopy()
	starting.Name, starting.Status.Phase = "starting", corev1.PodPending
	got := selectPods([]*corev1.Pod{
		trimmed.(*corev1.Pod),
		starting,
		pod("running", sidecar, corev1.PodRunning),
		pod("pending", sidecar, corev1.PodPending),
		pod("done", sidecar, corev1.PodSucceeded),
		pod("failed", sidecar, corev1.PodFailed),
		leaving,
		pod("z-bare", nil, corev1.PodRunning),
		pod("bare", map[string]string{v1alpha1.EnforcerLabel: "false"}, corev1.PodRunning),
		pod("bare-pending", nil, corev1.PodPending),
	})
	want := pods{
		enforcers:  []enforcer{{"exposed", "uid-x", true}, {"pending", "uid-x", false}, {"running", "uid-x", true}, {"starting", "uid-x", false}},
		exposed:    []string{"exposed (host port 80)"},
		leaving:    []enforcer{{"leaving", "uid-x", true}},
		uninjected: []string{"bare", "z-bare"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pods{}, enforcer{})); diff != "" {
		t.Errorf("selectPods (-want +got):\n%s", diff)
	}
}

// TestPodsThatChangeTogetherAreLookedAtOnce: each change would have all pods of its object be looked at.
func TestPodsThatChangeTogetherAreLookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := priorityqueue.New[reconcile.Request]("pods")
		defer queue.ShutDown()
		events := onPods(func(_ context.Context, pod client.Object) []reconcile.Request {
			return []reconcile.Request{request(pod)}
		})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		began := time.Now()
		events.Create(t.Context(), event.CreateEvent{Object: pod, IsInInitialList: true}, queue)
		time.Sleep(podsInterval / 2)
		events.Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, queue)
		events.Delete(t.Context(), event.DeleteEvent{Object: pod}, queue)
		events.Generic(t.Context(), event.GenericEvent{Object: pod}, queue)
		synctest.Wait()
		got, priority, _ := queue.GetWithPriority()
		if after := time.Since(began); got != request(pod) || after != podsInterval || priority != 0 {
			t.Errorf("got %v with priority %d after %s, want that of the pod with priority 0 after %s", got, priority, after, podsInterval)
		}
		queue.Done(got)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := queue.Len(); n > 0 {
			t.Errorf("%d more are queued", n)
		}

		events.Create(t.Context(), event.CreateEvent{Object: pod, IsInInitialList: true}, queue)
		if got, priority, _ := queue.GetWithPriority(); got != request(pod) || priority != handler.LowPriority {
			t.Errorf("a leader begins with %v of priority %d, want that of the pod with %d", got, priority, handler.LowPriority)
		}
	})
}
