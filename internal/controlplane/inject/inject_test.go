package inject

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var optedInNamespace = NamespaceFacts{Labels: map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled}}

// TestHundredContainers injects a pod larger than anybody would write.
func TestHundredContainers(t *testing.T) {
	pod := &corev1.Pod{}
	for i := range 100 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name:  fmt.Sprintf("app-%d", i),
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8000 + i)}},
		})
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprintf("init-%d", i)})
	}
	requireProperties(t, pod, optedInNamespace, testConfig)
	_, report := Inject(pod, optedInNamespace, testConfig)
	if len(report.Ports) != 1 || report.Ports[0].App != 8000 {
		t.Errorf("ports %v, want the first container's http alone", report.Ports)
	}
}

// TestHashIgnoresSnapshot: a policy edit must not make every sidecar look outdated.
func TestHashIgnoresSnapshot(t *testing.T) {
	mark := func(change func(*Config)) string {
		cfg := testConfig
		change(&cfg)
		out, _ := Inject(&corev1.Pod{}, optedInNamespace, cfg)
		return out.Annotations[v1alpha1.InjectedAnnotation]
	}
	base := mark(func(*Config) {})
	if got := mark(func(c *Config) { c.Snapshot = "other" }); got != base {
		t.Errorf("the snapshot changed the mark from %s to %s", base, got)
	}
	if got := mark(func(c *Config) { c.Image = "other" }); got == base {
		t.Error("another image left the mark as it was")
	}
}

// TestTokenIsOfThePodAlone: the kubelet asks by the token that the sidecar has, and
// pods that differ in nothing else carry the same mark.
func TestTokenIsOfThePodAlone(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}},
	}}}}
	var marks []string
	for _, token := range []string{"ONE", "OTHER"} {
		cfg := testConfig
		cfg.Capture, cfg.ProbeToken = CaptureRedirect, token
		out, _ := Inject(pod, optedInNamespace, cfg)
		marks = append(marks, out.Annotations[v1alpha1.InjectedAnnotation])
		if got, want := out.Spec.Containers[0].ReadinessProbe.HTTPGet.Path, "/probe/"+token+"/app/readiness"; got != want {
			t.Errorf("the kubelet asks at %s, want %s", got, want)
		}
		env := out.Spec.InitContainers[1].Env
		if want := (corev1.EnvVar{Name: "WEIR_PROBE_TOKEN", Value: token}); !slices.Contains(env, want) {
			t.Errorf("the sidecar has %v, want %v among it", env, want)
		}
	}
	if marks[0] != marks[1] {
		t.Errorf("the token changed the mark from %s to %s", marks[0], marks[1])
	}
}

// FuzzAnnotations gives every annotation arbitrary values: whatever they are, the
// properties hold and the sidecar stays ours.
func FuzzAnnotations(f *testing.F) {
	f.Add("", "", "", "", "", "", "", "")
	f.Add("shadow", "port", "disabled", "http,8080,http", "9090", "1h", "64Mi", "/ready?a=1")
	f.Add("$(X)", "explicit", "enabled", "65535,1,0", "-1", "999999h", "1e30", "$(WEIR_MODE)")
	f.Add("enforce", "redirect", "auto", "15006,15010,15020", ",", "-1s", "0", "\"}")
	f.Add("enforce", "port", "auto", "http", "9090", "1s", "enabled", "/")
	f.Fuzz(func(t *testing.T, mode, capture, native, inbound, skip, grace, quantity, path string) {
		if !utf8.ValidString(strings.Join([]string{mode, capture, native, inbound, skip, grace, quantity, path}, "")) {
			t.Skip("no review has such strings: it comes as JSON")
		}
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{
			v1alpha1.ModeAnnotation:                 mode,
			v1alpha1.CaptureAnnotation:              capture,
			v1alpha1.NativeSidecarAnnotation:        native,
			v1alpha1.InboundPortsAnnotation:         inbound,
			v1alpha1.SkipInboundPortsAnnotation:     skip,
			v1alpha1.ShutdownGracePeriodAnnotation:  grace,
			v1alpha1.SidecarCPURequestAnnotation:    quantity,
			v1alpha1.SidecarMemoryLimitAnnotation:   quantity,
			v1alpha1.SidecarMemoryRequestAnnotation: grace,
			v1alpha1.CheckSocketAnnotation:          quantity,
		}
		pod.Spec.Containers = []corev1.Container{
			{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "web", ContainerPort: 80}}},
			{Name: "admin", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 9090}}},
		}
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http"), Path: path},
		}}
		harden(&pod.Spec)
		for _, cfg := range variants() {
			requireProperties(t, pod, optedInNamespace, cfg)
		}
	})
}

// TestEveryMalformedValueIsNamed: a warning that does not say which value is
// wrong, and what to write, helps nobody.
func TestEveryMalformedValueIsNamed(t *testing.T) {
	for _, key := range []string{
		v1alpha1.ModeAnnotation, v1alpha1.CaptureAnnotation, v1alpha1.NativeSidecarAnnotation, v1alpha1.InboundPortsAnnotation,
		v1alpha1.SkipInboundPortsAnnotation, v1alpha1.ShutdownGracePeriodAnnotation, v1alpha1.UnderscoresAnnotation, v1alpha1.CheckSocketAnnotation,
		v1alpha1.SidecarCPURequestAnnotation, v1alpha1.SidecarCPULimitAnnotation,
		v1alpha1.SidecarMemoryRequestAnnotation, v1alpha1.SidecarMemoryLimitAnnotation,
	} {
		t.Run(key, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}},
			}}}
			want, _ := Inject(pod, optedInNamespace, testConfig)
			pod.Annotations = map[string]string{key: "not-a-value"}
			got, report := Inject(pod, optedInNamespace, testConfig)
			if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], key+` is "not-a-value"`) {
				t.Errorf("warnings %q, want one that names %s and its value", report.Warnings, key)
			}
			delete(got.Annotations, key)
			if asYAML(t, want) != asYAML(t, got) {
				t.Error("the malformed value changed the pod, want the default")
			}
		})
	}
}

func TestUnderscoresAreTheSidecarsBusiness(t *testing.T) {
	for value, want := range map[string]string{"": "", "drop": "", "pass": "pass", "refuse": "refuse"} {
		pod := &corev1.Pod{}
		if value != "" {
			pod.Annotations = map[string]string{v1alpha1.UnderscoresAnnotation: value}
		}
		out, report := Inject(pod, optedInNamespace, testConfig)
		got := ""
		for _, arg := range out.Spec.InitContainers[0].Args {
			if choice, ok := strings.CutPrefix(arg, "--underscores="); ok {
				got = choice
			}
		}
		if got != want || slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "underscores") }) {
			t.Errorf("%q has the sidecar called with %q, want %q; warnings %q", value, got, want, report.Warnings)
		}
	}
}

func TestTracesGoWhereTheConfigurationSays(t *testing.T) {
	for _, collector := range []string{"", "collector.monitoring:4317"} {
		cfg := testConfig
		cfg.TraceCollector = collector
		out, _ := Inject(&corev1.Pod{}, optedInNamespace, cfg)
		var got string
		for _, arg := range out.Spec.InitContainers[0].Args {
			if value, ok := strings.CutPrefix(arg, "--otlp-endpoint="); ok {
				got = value
			}
		}
		if got != collector {
			t.Errorf("sidecars send traces to %q, want %q", got, collector)
		}
	}
}

// TestBesideAMesh the sidecar takes over the name of a port, as a mesh takes the traffic
// first, and listens where the mesh does not.
func TestBesideAMesh(t *testing.T) {
	for name, listen := range map[string]int32{
		"istio-proxy": 15007, "linkerd-proxy": 15006, "kuma-sidecar": 15007, "consul-dataplane": 15006,
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Annotations = map[string]string{v1alpha1.CaptureAnnotation: string(CaptureAuto)}
			pod.Spec.Containers = []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}, {Name: name}}
			_, report := Inject(pod, optedInNamespace, testConfig)
			if report.Capture != CapturePort || len(report.Ports) != 1 || report.Ports[0] != (Port{Name: "http", Listen: listen, App: 8080}) {
				t.Errorf("captured by %s on %v, want by port on %d", report.Capture, report.Ports, listen)
			}
		})
	}
}
