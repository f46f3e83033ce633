package inject

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// TestBounds: a pod at a bound gets its sidecar, and one beyond it is refused where it
// opted in and nowhere else.
func TestBounds(t *testing.T) {
	for what, tc := range map[string]struct {
		max int
		pod func(n int) *corev1.Pod
	}{
		"bytes of annotations": {maxAnnotations, func(n int) *corev1.Pod {
			pod := &corev1.Pod{}
			pod.Annotations = map[string]string{"note": strings.Repeat("x", n-len("note"))}
			return pod
		}},
		"containers": {maxContainers, func(n int) *corev1.Pod {
			pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: make([]corev1.Container, 3), Containers: make([]corev1.Container, n-3)}}
			for c := range containers(&pod.Spec) {
				c.Name = fmt.Sprintf("c%p", c)
			}
			return pod
		}},
		"ports": {maxPorts, func(n int) *corev1.Pod {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 2)}}
			for i := range n {
				c := &pod.Spec.Containers[i%2]
				c.Ports = append(c.Ports, corev1.ContainerPort{Name: fmt.Sprintf("http-%d", i), ContainerPort: int32(firstInboundPort + i)})
				if i >= checkPort-firstInboundPort {
					c.Ports[len(c.Ports)-1].ContainerPort++
				}
			}
			return pod
		}},
		"volumes": {maxVolumes, func(n int) *corev1.Pod {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: make([]corev1.Volume, n)}}
			for i := range pod.Spec.Volumes {
				pod.Spec.Volumes[i].Name = fmt.Sprintf("weir-token-%d", i)
			}
			return pod
		}},
		"bytes of paths, headers and services in probes and hooks": {maxQuestions, func(n int) *corev1.Pod {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 8080, Service: new("service")}}},
				Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
					Port: intstr.FromInt32(8080), HTTPHeaders: []corev1.HTTPHeader{{Name: "name", Value: "value"}},
				}}},
			}}}}
			pod.Spec.Containers[0].Lifecycle.PreStop.HTTPGet.Path = "/" + strings.Repeat("p", n-len("/"+"app"+"service"+"app"+"name"+"value"))
			return pod
		}},
	} {
		t.Run(what, func(t *testing.T) {
			if _, report := Inject(tc.pod(tc.max), optedInNamespace, testConfig); !report.Injected {
				t.Errorf("at the bound: %s: %s; want it injected", report.Reason, report.Message)
			}
			beyond := tc.pod(tc.max + 1)
			out, report := Inject(beyond, optedInNamespace, testConfig)
			want := fmt.Sprintf("the pod has %d %s, and a pod with a sidecar up to %d: ", tc.max+1, what, tc.max)
			if report.Reason != TooLarge || !strings.HasPrefix(report.Message, want) || !strings.Contains(report.Message, v1alpha1.InjectKey) {
				t.Errorf("beyond the bound: %s: %s; want %s: %s and the cure", report.Reason, report.Message, TooLarge, want)
			}
			if len(out.Spec.InitContainers) != len(beyond.Spec.InitContainers) {
				t.Error("the refused pod was changed")
			}
			if _, report := Inject(beyond, NamespaceFacts{}, testConfig); report.Reason != NotOptedIn {
				t.Errorf("where nobody opted in: %s: %s", report.Reason, report.Message)
			}
			beyond.Spec.HostNetwork = true
			if _, report := Inject(beyond, optedInNamespace, testConfig); report.Reason != HostNetwork {
				t.Errorf("where no sidecar can be: %s: %s", report.Reason, report.Message)
			}
		})
	}
}

// TestAnInjectedPodIsBeyondNoBound: with our containers it may have more than one may that
// comes without.
func TestAnInjectedPodIsBeyondNoBound(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, maxContainers), Volumes: make([]corev1.Volume, maxVolumes)}}
	once, _ := Inject(pod, optedInNamespace, testConfig)
	if _, report := Inject(once, optedInNamespace, testConfig); report.Reason != AlreadyInjected {
		t.Errorf("%s: %s", report.Reason, report.Message)
	}
}

func TestListsOfPortsAreShort(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	}}}}
	for entries, want := range map[int]string{
		maxEntries:     "",
		maxEntries + 1: fmt.Sprintf(`... (%d bytes): it has %d entries, and may have up to %d; no port is skipped`, 5*maxEntries+4, maxEntries+1, maxEntries),
	} {
		pod.Annotations = map[string]string{v1alpha1.SkipInboundPortsAnnotation: strings.Repeat("9000,", entries-1) + "9000"}
		_, report := Inject(pod, optedInNamespace, testConfig)
		if got := strings.Join(report.Warnings, "\n"); !strings.HasSuffix(got, want) || (got == "") != (want == "") {
			t.Errorf("%d entries: warnings %q, want one that ends with %q", entries, got, want)
		}
	}
}

func TestWarningsAreFewAndShort(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}}}
	pod.Annotations = map[string]string{v1alpha1.ModeAnnotation: strings.Repeat("m", 1000)}
	for i := range 50 {
		pod.Annotations[fmt.Sprintf("weir.dev/%02d%s", i, strings.Repeat("x", 1000))] = ""
	}
	_, report := Inject(pod, optedInNamespace, testConfig)
	if len(report.Warnings) != maxWarnings+1 || report.Warnings[maxWarnings] != "31 more warnings are left out: act on these first" {
		t.Errorf("%d warnings, the last %q; want %d and how many more there are", len(report.Warnings), report.Warnings[len(report.Warnings)-1], maxWarnings)
	}
	for _, w := range report.Warnings {
		if len(w) > 600 {
			t.Errorf("a warning of %d bytes: %s", len(w), w)
		}
	}
}
