package leadership_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
)

const namespace = "weir-system"

func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

func labelled(t *testing.T, c client.Client) []string {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.MatchingLabels{leadership.LabelKey: leadership.LabelValue}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	return names
}

// lastToGo returns the pods that a ReplicaSet deletes after those without a cost.
func lastToGo(t *testing.T, c client.Client) []string {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pods.Items {
		if cost, err := strconv.Atoi(p.Annotations[corev1.PodDeletionCost]); err == nil && cost > 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

func expect(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) || len(want) == 1 && got[0] != want[0] {
		t.Errorf("%s: pods are %v, want %v", when, got, want)
	}
}

func TestOnlyTheLeaderIsLabelled(t *testing.T) {
	crashed := map[string]string{leadership.LabelKey: leadership.LabelValue, "app": "weir"}
	old := pod("old", crashed)
	old.Annotations = map[string]string{corev1.PodDeletionCost: "1"}
	c := fake.NewClientBuilder().WithObjects(old, pod("new", nil), pod("other", nil)).Build()
	labeler := &leadership.Labeler{Writer: c, Reader: c, Pod: types.NamespacedName{Namespace: namespace, Name: "new"}}

	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- labeler.Start(ctx) }()
		synctest.Wait()
		expect(t, "while leading", labelled(t, c), "new")
		expect(t, "for a rollout", lastToGo(t, c), "new")

		stop()
		if err := <-stopped; err != nil {
			t.Errorf("Start: %v", err)
		}
		expect(t, "after stepping down", labelled(t, c))
		expect(t, "for a rollout after stepping down", lastToGo(t, c))
	})

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatal(err)
	}
	if old.Labels["app"] != "weir" {
		t.Errorf("the other labels of the old leader's pod are gone: %v", old.Labels)
	}
}

func TestARestartedProcessIsNotTheLeader(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(pod("new", map[string]string{leadership.LabelKey: leadership.LabelValue})).Build()
	labeler := &leadership.Labeler{Writer: c, Reader: c, Pod: types.NamespacedName{Namespace: namespace, Name: "new"}}
	if err := labeler.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "after Clear", labelled(t, c))
}

func TestStartWaitsForThePod(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	labeler := &leadership.Labeler{Writer: c, Reader: c, Pod: types.NamespacedName{Namespace: namespace, Name: "late"}}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- labeler.Start(ctx) }()
		synctest.Wait()
		if err := c.Create(t.Context(), pod("late", nil)); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Second) // on the bubble's clock: past the next try
		expect(t, "once the pod exists", labelled(t, c), "late")
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
}
