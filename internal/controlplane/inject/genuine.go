package inject

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// foreign returns what of the pod, which has both marks of an injected one, is not as
// injection would render it now, or "". A pod's author can write both marks, and so would
// be limited by nothing without a word.
//
// The annotation says where requests come in, which an author may choose anyway, and the
// rest is rendered from it again. Only what decides on whether the sidecar does its work is
// compared: the API server fills in defaults, other webhooks add to every container, and
// policies change between two calls.
func foreign(pod *corev1.Pod, ns NamespaceFacts, cfg Config) string {
	var s status
	if json.Unmarshal([]byte(pod.Annotations[v1alpha1.InjectedAnnotation]), &s) != nil {
		return "the annotation " + v1alpha1.InjectedAnnotation
	}
	a := &annotated{pod: pod.Annotations, namespace: ns.Annotations}
	p := &plan{cfg: cfg, tuning: a.tuning(&cfg), capture: s.Capture, ports: s.Ports, form: Classic, podGrace: podGrace(&pod.Spec)}
	p.aside = p.capture == CaptureExplicit && p.wantedCapture != CaptureExplicit
	p.rlsAddress = rlsAddress(&pod.Spec)
	sidecar := named(pod.Spec.Containers, ContainerName)
	if sidecar == nil {
		p.form, sidecar = Native, named(pod.Spec.InitContainers, ContainerName)
	}
	for i := range sidecar.Ports {
		if sidecar.Ports[i].Name == AdminPortName {
			p.admin = sidecar.Ports[i].ContainerPort
		}
	}
	want := p.sidecar()
	switch {
	case !reflect.DeepEqual(ours(want.Env), ours(sidecar.Env)) || len(sidecar.EnvFrom) > 0:
		return "the environment of container " + ContainerName
	case !reflect.DeepEqual(want.Ports, sidecar.Ports):
		return "the ports of container " + ContainerName
	case !mountsToken(&pod.Spec, sidecar):
		return "the token of container " + ContainerName
	}
	for _, w := range append(p.initContainers(), want) {
		c := sidecar
		if w.Name != ContainerName {
			c = named(pod.Spec.InitContainers, w.Name)
		}
		if part := differs(&w, c); part != "" {
			return fmt.Sprintf("the %s of container %s", part, w.Name)
		}
	}
	return ""
}

// differs returns what makes c run another program than want, or "".
func differs(want, c *corev1.Container) string {
	switch {
	case c == nil:
		return "whole"
	case imageName(c.Image) != imageName(want.Image):
		return "image"
	case len(c.Command) > 0:
		return "command"
	case !slices.Equal(withoutProbes(c.Args), want.Args):
		return "arguments"
	case slices.ContainsFunc(c.VolumeMounts, coversProgram):
		return "program"
	}
	return ""
}

// imageName returns an image's name without where it comes from and which one it is: a
// webhook that leads to a mirror, or names images by digest, changes both.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(path.Base(image), ":")
	return name
}

// coversProgram reports whether something else is where the image has its program.
func coversProgram(m corev1.VolumeMount) bool {
	at := path.Clean("/" + m.MountPath)
	return at == program || at == "/"
}

// withoutProbes leaves out the questions of the kubelet, which are taken out of the pod
// when it is injected and say nothing about requests.
func withoutProbes(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "--probe=") })
}

// ours leaves out what other webhooks add, and what differs from one call to the next.
func ours(env []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(slices.Clone(env), func(e corev1.EnvVar) bool {
		return !strings.HasPrefix(e.Name, "WEIR_") || e.Name == snapshotEnv || e.Name == probeTokenEnv
	})
}

// mountsToken reports whether the sidecar can prove its identity to the controller. One
// that cannot enforces what the pod's author gave it.
func mountsToken(spec *corev1.PodSpec, sidecar *corev1.Container) bool {
	genuine := map[string]bool{}
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.Projected != nil && reflect.DeepEqual(v.Projected.Sources, tokenVolume(v.Name).Projected.Sources) {
			genuine[v.Name] = true
		}
	}
	return slices.ContainsFunc(sidecar.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == tokenDirectory && m.SubPath == "" && m.SubPathExpr == "" && genuine[m.Name]
	})
}

// named returns the container of that name, nil for none.
func named(list []corev1.Container, name string) *corev1.Container {
	i := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}
