package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
)

// sidecarIn returns the pod as the injector changes it.
func sidecarIn(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	out, report := inject.Inject(pod, inject.NamespaceFacts{Labels: map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled}}, inject.Config{
		Version: "v0.1.0", Image: "registry.example/weir-sidecar:v0.1.0", FleetAddress: "weir-fleet.weir-system.svc:15030",
		FleetServerName: "weir-fleet.weir-system.svc", KubernetesMinor: 34, ProbeToken: "T0KEN",
	})
	if !report.Injected {
		t.Fatal(report.Message)
	}
	return out
}

// running returns a running pod of the app with these annotations.
func running(name string, annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "checkout"}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{ServiceAccountName: "checkout", Containers: []corev1.Container{{
			Name: "app", Image: "registry.example/checkout:1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, "=")
		pod.Annotations[key] = value
	}
	return pod
}

// programmed is the condition of generation 2.
func programmed(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ProgrammedCondition, Status: status, ObservedGeneration: 2, Reason: reason, Message: message}
}

func TestJudge(t *testing.T) {
	opted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled}}}
	run := programmed(metav1.ConditionTrue, v1alpha1.ProgrammedReason, "all run it")
	bare := running("bare")
	bare.Spec.Containers[0].Ports[0].Name = "admin"
	exposed := running("exposed", v1alpha1.CaptureAnnotation+"=port")
	exposed.Spec.Containers[0].Ports[0].HostPort = 80
	waiting := sidecarIn(t, running("waiting"))
	waiting.Status.Phase = corev1.PodPending
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		namespace *corev1.Namespace
		object    object
		limited   metav1.ConditionStatus
		reason    string // the start of it
	}{
		"enforced":                      {pod: sidecarIn(t, running("a")), limited: "True"},
		"no sidecar in an opted-in one": {pod: running("a"), namespace: opted, limited: "False", reason: "no sidecar, though it is opted in"},
		"not opted in":                  {pod: running("a"), namespace: &corev1.Namespace{}, limited: "False", reason: "no sidecar: neither the pod"},
		"opted out":                     {pod: running("a", "weir.dev/inject=disabled"), namespace: opted, limited: "False", reason: "no sidecar: the pod's annotation weir.dev/inject"},
		"a namespace nobody may read":   {pod: running("a"), limited: "False", reason: "no sidecar: the namespace cannot be read"},
		"bypass":                        {pod: sidecarIn(t, running("a", "weir.dev/mode=bypass")), limited: "False", reason: "weir.dev/mode is bypass"},
		"shadow of the pod":             {pod: sidecarIn(t, running("a", "weir.dev/mode=shadow")), limited: "False", reason: "weir.dev/mode is shadow"},
		"shadow of the object":          {pod: sidecarIn(t, running("a")), object: object{mode: v1alpha1.ShadowMode}, limited: "False", reason: "spec.mode is Shadow"},
		"nothing captured":              {pod: sidecarIn(t, bare), limited: "False", reason: "no port is captured"},
		"the app asks about a policy":   {pod: sidecarIn(t, running("a", "config.weir.dev/capture=explicit")), object: object{checked: true}, limited: "True", reason: "only where the app asks"},
		"the app cannot ask of a pool":  {pod: sidecarIn(t, running("a", "config.weir.dev/capture=explicit")), limited: "False", reason: "config.weir.dev/capture is explicit, and"},
		"past the sidecar":              {pod: sidecarIn(t, exposed), limited: "True", reason: "not by host port 80"},
		"not running yet":               {pod: waiting, limited: "Unknown", reason: "the pod is Pending"},
		"another pool applies":          {pod: sidecarIn(t, running("a")), object: object{applies: func(*corev1.Pod) bool { return false }}, limited: "False", reason: "older pools"},
		"no report yet":                 {pod: sidecarIn(t, running("a")), object: object{conditions: []metav1.Condition{}}, limited: "Unknown", reason: "the controller has not reported on generation 2"},
		"a report of another generation": {
			pod: sidecarIn(t, running("a")), object: object{conditions: []metav1.Condition{{Type: v1alpha1.ProgrammedCondition, Status: "True", ObservedGeneration: 1}}},
			limited: "Unknown", reason: "the controller has not reported on generation 2",
		},
		"some sidecars lag": {
			pod: sidecarIn(t, running("a")), object: object{conditions: []metav1.Condition{programmed("False", v1alpha1.ReconcilingReason, "1 of 2")}},
			limited: "Unknown", reason: "1 of 2",
		},
		"others are idle": {
			pod: sidecarIn(t, running("a")), object: object{conditions: []metav1.Condition{programmed("False", v1alpha1.PartiallyProgrammedReason, "1 of 2")}},
			limited: "True",
		},
		"not accepted": {
			pod: sidecarIn(t, running("a")), object: object{conditions: []metav1.Condition{run, {Type: v1alpha1.AcceptedCondition, Status: "False", ObservedGeneration: 2, Message: "bad"}}},
			limited: "Unknown", reason: "not accepted, so sidecars run no or an earlier generation: bad",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.object.generation = 2; tc.object.conditions == nil {
				tc.object.conditions = []metav1.Condition{run}
			}
			limited, reason := tc.object.judge(tc.pod, tc.namespace)
			if limited != tc.limited || !strings.HasPrefix(reason, tc.reason) || (tc.reason == "") != (reason == "") {
				t.Errorf("judge = %s, %q; want %s, %q", limited, reason, tc.limited, tc.reason)
			}
		})
	}
}
