package inject

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// injectedPod returns a pod that was injected with connections led to its sidecar, which
// is the second init container.
func injectedPod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}},
	}}}}
	out, report := Inject(pod, optedInNamespace, testConfig)
	if report.Capture != CaptureRedirect || len(out.Spec.InitContainers) != 2 {
		t.Fatalf("report %+v, want a redirection", report)
	}
	return out
}

// TestAForgedSidecarIsNoSidecar: a pod with both marks of an injected one is reported
// as not limited, and so is a pod created from that of an older installation.
func TestAForgedSidecarIsNoSidecar(t *testing.T) {
	for name, tc := range map[string]struct {
		forge func(pod *corev1.Pod, sidecar *corev1.Container)
		want  string // in the message
	}{
		"another image":      {func(_ *corev1.Pod, c *corev1.Container) { c.Image = "registry.example/sidecar:" + testConfig.Version }, "image of container weir-sidecar"},
		"another program":    {func(_ *corev1.Pod, c *corev1.Container) { c.Command = []string{"/pause"} }, "command of container weir-sidecar"},
		"another controller": {func(_ *corev1.Pod, c *corev1.Container) { c.Args[0] = "--fleet-address=elsewhere:1" }, "arguments of container weir-sidecar"},
		"one more argument":  {func(_ *corev1.Pod, c *corev1.Container) { c.Args = append(c.Args, "--version") }, "arguments of container weir-sidecar"},
		"no argument":        {func(_ *corev1.Pod, c *corev1.Container) { c.Args = nil }, "arguments of container weir-sidecar"},
		"another authority":  {func(_ *corev1.Pod, c *corev1.Container) { c.Env[4].Value = "" }, "environment of container weir-sidecar"},
		"another mode":       {func(_ *corev1.Pod, c *corev1.Container) { c.Env[6].Value = "bypass" }, "environment of container weir-sidecar"},
		"a variable of ours": {func(_ *corev1.Pod, c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "WEIR_SANDBOX_IP", Value: "127.0.0.9"})
		}, "environment of container weir-sidecar"},
		"variables from a map": {func(_ *corev1.Pod, c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{}} }, "environment of container weir-sidecar"},
		"another port": {func(_ *corev1.Pod, c *corev1.Container) {
			c.Ports = append(c.Ports, corev1.ContainerPort{Name: "http", ContainerPort: 1})
		}, "ports of container weir-sidecar"},
		"a mount over the image": {func(_ *corev1.Pod, c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{MountPath: "/x/../sidecar"})
		}, "program of container weir-sidecar"},
		"no token": {func(_ *corev1.Pod, c *corev1.Container) { c.VolumeMounts = c.VolumeMounts[1:] }, "token of container weir-sidecar"},
		"a token of one's own": {func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}, "token of container weir-sidecar"},
		"no redirection":        {func(p *corev1.Pod, _ *corev1.Container) { p.Spec.InitContainers = p.Spec.InitContainers[1:] }, "whole of container weir-capture"},
		"a redirection of none": {func(p *corev1.Pod, _ *corev1.Container) { p.Spec.InitContainers[0].Args = []string{"capture"} }, "arguments of container weir-capture"},
		"another capture":       {func(p *corev1.Pod, _ *corev1.Container) { p.Spec.InitContainers[0].Image = "busybox" }, "image of container weir-capture"},
		"no record":             {func(p *corev1.Pod, _ *corev1.Container) { p.Annotations[v1alpha1.InjectedAnnotation] = "yes" }, "annotation status.weir.dev/injected"},
		"both marks alone": {func(p *corev1.Pod, _ *corev1.Container) {
			p.Annotations[v1alpha1.InjectedAnnotation] = "{}"
			p.Spec.InitContainers, p.Spec.Containers = nil, append(p.Spec.Containers, corev1.Container{Name: ContainerName, Image: "pause"})
		}, "environment of container weir-sidecar"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := injectedPod(t)
			tc.forge(pod, &pod.Spec.InitContainers[1])
			before := asYAML(t, pod)
			out, report := Inject(pod, optedInNamespace, testConfig)
			if report.Reason != ForeignSidecar || report.Injected || !strings.Contains(report.Message, "the "+tc.want+" is not what") {
				t.Errorf("report %+v, want %s that names the %s", report, ForeignSidecar, tc.want)
			}
			if asYAML(t, out) != before {
				t.Error("the pod was changed")
			}
		})
	}
}

// TestWhatOthersAddIsNoForgery: what the API server, other webhooks and time do to an
// injected pod between two calls.
func TestWhatOthersAddIsNoForgery(t *testing.T) {
	for name, change := range map[string]func(pod *corev1.Pod, c *corev1.Container, cfg *Config){
		"nothing": func(*corev1.Pod, *corev1.Container, *Config) {},
		"defaults": func(_ *corev1.Pod, c *corev1.Container, _ *Config) {
			c.TerminationMessagePath, c.ImagePullPolicy = "/dev/termination-log", corev1.PullAlways
		},
		"the default grace period": func(p *corev1.Pod, _ *corev1.Container, _ *Config) {
			p.Spec.TerminationGracePeriodSeconds = new(int64(30))
		},
		"a default mode of the volume": func(p *corev1.Pod, _ *corev1.Container, _ *Config) {
			p.Spec.Volumes[0].Projected.DefaultMode = new(int32(0o644))
		},
		"a variable of another": func(_ *corev1.Pod, c *corev1.Container, _ *Config) {
			c.Env = slices.Insert(c.Env, 0, corev1.EnvVar{Name: "AWS_REGION", Value: "x"})
		},
		"a mount of another": func(_ *corev1.Pod, c *corev1.Container, _ *Config) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{MountPath: "/var/run/aws"})
		},
		"a mirror": func(p *corev1.Pod, c *corev1.Container, _ *Config) {
			c.Image = "mirror.example:5000/weir/weir-sidecar@sha256:1111"
			p.Spec.InitContainers[0].Image = "mirror.example/weir-sidecar:v1@sha256:1111"
		},
		"resources of another": func(_ *corev1.Pod, c *corev1.Container, _ *Config) {
			c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
		},
		"a mesh": func(p *corev1.Pod, _ *corev1.Container, _ *Config) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "istio-proxy"})
		},
		"a policy that changed":   func(_ *corev1.Pod, _ *corev1.Container, cfg *Config) { cfg.Snapshot = "other" },
		"a token of another call": func(_ *corev1.Pod, _ *corev1.Container, cfg *Config) { cfg.ProbeToken = "OTHER" },
	} {
		t.Run(name, func(t *testing.T) {
			pod, cfg := injectedPod(t), testConfig
			change(pod, &pod.Spec.InitContainers[1], &cfg)
			if _, report := Inject(pod, optedInNamespace, cfg); report.Reason != AlreadyInjected {
				t.Errorf("report %+v, want %s", report, AlreadyInjected)
			}
		})
	}
}
