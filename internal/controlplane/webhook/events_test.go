package webhook

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A sink keeps the notes of Events as a user would list them.
type sink struct {
	mu    sync.Mutex
	notes []string // guarded by mu
}

func (s *sink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, e.Note)
	return e, nil
}

func (s *sink) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }

func (s *sink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return e, nil
}

// TestEveryWarningBecomesAnEvent uses the recorder of the process, which merges
// Events that it takes for the same.
func TestEveryWarningBecomesAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown := &sink{}
		broadcaster := events.NewBroadcaster(shown)
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		injector, _ := newInjector()
		injector.Events = broadcaster.NewRecorder(runtime.NewScheme(), "weir")
		create := func(annotations map[string]string) {
			injector.Handle(t.Context(), request(encode(t, aPod(annotations))))
			synctest.Wait()
		}
		wrong := map[string]string{v1alpha1.ModeAnnotation: "on", v1alpha1.CaptureAnnotation: "iptables"}
		create(wrong)
		create(wrong) // a second replica is not news
		create(map[string]string{v1alpha1.ModeAnnotation: "off"})

		want := []string{
			"pod checkout-7d9c: config.weir.dev/capture is \"iptables\": use auto, redirect, port or explicit; port is used",
			"pod checkout-7d9c: the sidecar stands in front of http (8080)",
			"pod checkout-7d9c: weir.dev/mode is \"off\": use enforce, shadow or bypass; enforce is used",
			"pod checkout-7d9c: weir.dev/mode is \"on\": use enforce, shadow or bypass; enforce is used",
		}
		slices.Sort(shown.notes)
		if diff := cmp.Diff(want, shown.notes); diff != "" {
			t.Errorf("notes (-want +got):\n%s", diff)
		}
	})
}

func TestAnEventIsOfTheControllerOfThePod(t *testing.T) {
	pod, lone := aPod(nil), aPod(nil)
	lone.OwnerReferences = nil
	for of, want := range map[*corev1.Pod]corev1.ObjectReference{
		pod:  {APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Name: "checkout-7d9c", UID: "1"},
		lone: {APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "checkout-7d9c"},
	} {
		if got := subject(of, "shop"); *got != want {
			t.Errorf("the Event is of %+v, want %+v", *got, want)
		}
	}
}

// TestEventsKeepNothingLong of a pod that nobody has validated.
func TestEventsKeepNothingLong(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	owned := aPod(nil)
	owned.OwnerReferences[0] = metav1.OwnerReference{APIVersion: long, Kind: long, Name: long, UID: types.UID(long), Controller: new(true)}
	for _, pod := range []*corev1.Pod{owned, {ObjectMeta: metav1.ObjectMeta{Name: long}}, {ObjectMeta: metav1.ObjectMeta{GenerateName: long}}} {
		about := subject(pod, namespace)
		if n := len(about.APIVersion + about.Kind + about.Name + string(about.UID)); n > 4*253 {
			t.Errorf("the Event is about something with names of %d bytes", n)
		}
	}
}
