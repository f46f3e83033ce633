package controllers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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
